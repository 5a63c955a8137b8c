"""Recurrent layers.

    vanilla  h' = tanh(W x + U h)

    GRU      r = σ(W_r x + U_r h)      reset gate: how much of the past the candidate n uses
             z = σ(W_z x + U_z h)      update gate: how much of the past is kept
             n = tanh(W_n x + r ∘ (U_n h))
             h' = (1 - z) ∘ n + z ∘ h

    LSTM     i, f, o = σ(W x + U h)    input, forget and output gate
             c' = f ∘ c + i ∘ tanh(W_c x + U_c h)
             h' = o ∘ tanh(c')

Each W x and each U h has its own bias, omitted above. A state is one tensor (B, C): the hidden
vector h, followed by the cell c of an LSTM.

torch computes the cells, with one exception: on a CPU, `fast/gru.py` and `fast/repeated_gru.py`
compute a GRU where they are faster than torch.
"""

import warnings
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from seqloom.core.batch import Padded
from seqloom.nn.dropout import Dropout
from seqloom.nn.fast.dispatch import cudnn_would_use_float16, trains_on_cpu
from seqloom.nn.fast.gru import gru, is_gru_faster
from seqloom.nn.fast.repeated_gru import repeated_gru
from seqloom.nn.observer import current_observer

Cell = Literal["rnn", "gru", "lstm"]
LayerStep = Callable[[Tensor, Tensor], Tensor]
"""Runs one step of a layer: inputs and state (B, C) -> next state (B, C). The inputs are (B, D). A function
of `RecurrentLayer.prepare_steps` already has the first K entries of all inputs, so it gets only the rest
(B, D - K)."""


class RecurrentLayer(nn.Module):
    """A recurrent layer, run over a whole sequence or one step at a time.

    cell:           "rnn" (vanilla), "gru" or "lstm"
    input_width:    D, width of the inputs
    width:          N, width of the hidden vector h
    weight_dropout: probability with which an entry of the state-to-state weights is set to zero in
                    training. The same entries are zero at all positions of a sequence (Merity et
                    al. 2018). Default: 0
    """

    def __init__(
        self, cell: Cell, input_width: int, width: int, weight_dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.weight_dropout = Dropout(weight_dropout) if weight_dropout else nn.Identity()
        self.cell: Cell = cell
        self.width = width
        kind = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[cell]
        self.network: nn.RNNBase = kind(input_width, width, batch_first=True)
        # Orthogonal initialisation: a product with such a matrix does not change a state's norm.
        for block in self.network.all_weights[0][1].detach().chunk(self._gate_count):
            nn.init.orthogonal_(block)

    @property
    def _gate_count(self) -> int:
        return {"rnn": 1, "gru": 3, "lstm": 4}[self.cell]

    @property
    def state_width(self) -> int:
        """C, the width of a state: the width of the hidden vector, or twice as much for an LSTM."""
        return self.width * (2 if self.cell == "lstm" else 1)

    def forward(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Run over the inputs (B, T, D), starting from `state` (B, C).

        Return the hidden vectors (B, T, N) and the final state (B, C).
        """
        if cudnn_would_use_float16(inputs):
            with torch.autocast(inputs.device.type, enabled=False):
                return self(inputs.float(), state.float())
        if self.cell == "gru" and is_gru_faster(inputs, self.network.all_weights[0][1]):
            hidden = gru(inputs.transpose(0, 1).contiguous(), state, self.weights())  # (T, B, N)
            return hidden.transpose(0, 1), hidden[-1]
        if not self._drops_weights:
            hidden, last = self.network(inputs, self._to_torch(state))
            return hidden, self._from_torch(last)
        run: Any = {"rnn": torch.rnn_tanh, "gru": torch.gru, "lstm": torch.lstm}[self.cell]
        with warnings.catch_warnings():
            # Weight dropout creates new tensors, so cuDNN has to copy the weights into one block.
            # torch warns about this copy.
            warnings.filterwarnings("ignore", "RNN module weights are not part of single")
            hidden, *last = run(
                inputs,
                self._to_torch(state),
                self.weights(),
                has_biases=True,
                num_layers=1,
                dropout=0.0,
                train=True,
                bidirectional=False,
                batch_first=True,
            )
        return hidden, torch.cat(last, dim=-1).squeeze(0)

    @property
    def _drops_weights(self) -> bool:
        return self.training and isinstance(self.weight_dropout, Dropout)

    def weights(self) -> list[Tensor]:
        """Return the input weights W, the state-to-state weights U, and the biases of W and of U.

        In training with weight dropout, each call sets different entries of U to zero. Therefore
        call this method only once per sequence.
        """
        input_weight, state_weight, *biases = self.network.all_weights[0]
        return [input_weight, self.weight_dropout(state_weight), *biases]

    def step(self, inputs: Tensor, state: Tensor, weights: list[Tensor] | None = None) -> Tensor:
        """Run one step with the inputs (B, D), starting from `state` (B, C).

        Return the next state (B, C). Its first N entries are the hidden vector h.

        weights: the result of `self.weights()`. Default: None; `step` then calls `self.weights()`
        """
        weights = self.weights() if weights is None else weights
        observer = current_observer()
        if observer is not None:
            state = observer.observe(self, "carried", state)
        match self.cell:
            case "rnn":
                state = torch.rnn_tanh_cell(inputs, state, *weights)
            case "gru":
                state = torch.gru_cell(inputs, state, *weights)
            case "lstm":
                hidden, cell = state.chunk(2, dim=-1)
                state = torch.cat(torch.lstm_cell(inputs, (hidden, cell), *weights), dim=-1)
        return state if observer is None else observer.observe(self, "state", state)

    def formula(self, inputs: str, state: str) -> str:
        """Formula of the state after a step, given the symbols of its inputs."""
        if self.cell == "rnn":
            return f"tanh(W {inputs} + U {state} + b)"
        return f"{self.cell.upper()}({inputs}, {state})"

    @property
    def note(self) -> str:
        """The equations of a GRU or LSTM cell with input x and state s, without biases."""
        return {
            "rnn": "",
            "gru": "r = σ(Wr x + Ur s), z = σ(Wz x + Uz s), n = tanh(Wn x + r∘Un s), "
            "s′ = (1 - z)∘n + z∘s",
            "lstm": "s has a cell m: i, f, o = σ(W x + U s), m′ = f∘m + i∘tanh(Wm x + Um s), "
            "s′ = o∘tanh(m′)",
        }[self.cell]

    def prepare_steps(self, known: Tensor) -> LayerStep:
        """Return a function to call instead of `step` for every step of one sequence.

        Its first argument is the rest (B, D - K) of the step's input, without the first K entries,
        which `known` contains for all steps. Its second argument is the state (B, C).

        For a GRU in training on a CPU, the function is faster than `step`: the known part of the
        inputs is multiplied by the weights for all steps at once, and backward computes the
        gradients of the weights once for all steps (`fast/repeated_gru.py`).

        known: (B, T, K) the first K entries of the inputs of all T steps; K can be 0
        """
        weights = self.weights()
        if self.cell == "gru" and trains_on_cpu(known, weights[1]):
            return repeated_gru(known, weights)
        known_inputs = iter(known.unbind(1))

        def step(rest: Tensor, state: Tensor) -> Tensor:
            return self.step(torch.cat((next(known_inputs), rest), -1), state, weights)

        return step

    def encode(self, source: Padded) -> tuple[Tensor, Tensor]:
        """Run over padded rows (B, S, D) from a state of zeros.

        Return the hidden vectors (B, S, N), which are zero at padding, and the state (B, C) at the
        last real position of each row.

        A GRU and a vanilla cell also run over the padding, and the results there are discarded.
        This is much faster than torch's packed sequences, which skip padding. An LSTM runs with
        packed sequences or step by step.
        """
        observer = current_observer()
        if observer is not None and observer.is_stepwise:
            return self.encode_stepwise(source)
        if self.cell == "lstm":
            # torch returns c only for the last position of a batch, but shorter rows end earlier.
            stepwise = source.values.is_cuda or self._drops_weights
            return self.encode_stepwise(source) if stepwise else self._encode_packed(source)
        start = source.values.new_zeros(len(source.lengths), self.state_width)
        hidden, _ = self(source.values, start)
        return self._at_real_positions(hidden, source)

    def encode_repeated(self, source: Padded, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Run a GRU over padded rows in which the same input vector occurs at several positions.

        Return the same values as `encode`. In training on a CPU, this method is faster, because
        it projects each distinct input vector only once.

        vectors: (U, D) the distinct input vectors
        source:  (B, S) the index in `vectors` of the input vector at each position
        """
        start = vectors.new_zeros(len(source.lengths), self.width)
        index = source.values.t().contiguous()  # (S, B)
        hidden = gru(vectors, start, self.weights(), index).transpose(0, 1)
        return self._at_real_positions(hidden, source)

    def _at_real_positions(self, hidden: Tensor, source: Padded) -> tuple[Tensor, Tensor]:
        """Set the hidden vectors (B, S, N) at padding to zero.

        Return them and the hidden vector (B, N) at the last real position of each row.
        """
        ends = (source.lengths - 1)[:, None, None].expand(-1, 1, self.width)
        return hidden.masked_fill(~source.mask.unsqueeze(-1), 0), hidden.gather(1, ends).squeeze(1)

    def _encode_packed(self, source: Padded) -> tuple[Tensor, Tensor]:
        """Run over padded rows (B, S, D) with torch's packed sequences, which skip padding.

        Return the hidden vectors (B, S, N), which are zero at padding, and the state (B, C) at the
        last real position of each row.

        Not used on a GPU. torch needs the lengths on the host, and to copy them the host would
        have to wait until the GPU has finished all earlier work.
        """
        packed = pack_padded_sequence(
            source.values, source.lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        hidden: PackedSequence
        hidden, last = self.network(packed)
        padded, _ = pad_packed_sequence(
            hidden, batch_first=True, total_length=source.values.shape[1]
        )
        return padded, self._from_torch(last)

    def encode_stepwise(self, source: Padded) -> tuple[Tensor, Tensor]:
        """Run over padded rows (B, S, D), one step at a time.

        Return the hidden vectors (B, S, N), which are zero at padding, and the state (B, C) at the
        last real position of each row.
        """
        mask = source.mask.unsqueeze(-1)  # (B, S, 1)
        state = source.values.new_zeros(len(source.lengths), self.state_width)
        hidden, weights = [], self.weights()
        for inputs, is_real in zip(source.values.unbind(1), mask.unbind(1), strict=True):
            state = torch.where(is_real, self.step(inputs, state, weights), state)
            hidden.append(state[:, : self.width])
        return torch.stack(hidden, dim=1).masked_fill(~mask, 0), state

    def _to_torch(self, state: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Convert a state (B, C) to torch's format: (1, B, N), or for an LSTM a pair of these."""
        if self.cell == "lstm":
            return tuple(part.unsqueeze(0).contiguous() for part in state.chunk(2, dim=-1))
        return state.unsqueeze(0).contiguous()

    def _from_torch(self, last: Tensor | tuple[Tensor, Tensor]) -> Tensor:
        """Convert a state from torch's format to (B, C). For an LSTM, concatenate h and c."""
        return torch.cat(last, dim=-1).squeeze(0) if isinstance(last, tuple) else last.squeeze(0)


def reverse(source: Padded) -> Padded:
    """Reverse the real positions of each row. Padding stays on the right.

    Applied twice, this restores the source.
    """
    length = source.values.shape[1]
    positions = torch.arange(length, device=source.values.device).expand(len(source.lengths), -1)
    mirrored = source.lengths.unsqueeze(1) - 1 - positions  # (B, S)
    index = torch.where(source.mask, mirrored, positions)
    while index.dim() < source.values.dim():
        index = index.unsqueeze(-1)
    return Padded(source.values.gather(1, index.expand_as(source.values)), source.lengths)
