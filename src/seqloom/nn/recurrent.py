"""Recurrent layers: one state, carried along the sequence.

    vanilla  h' = tanh(W x + U h)

    GRU      r = σ(W_r x + U_r h)      how much of the past the candidate sees
             z = σ(W_z x + U_z h)      how much of the past stays
             n = tanh(W_n x + r ∘ (U_n h))
             h' = (1 - z) ∘ n + z ∘ h

    LSTM     i, f, o = σ(W x + U h)    what comes in, stays, goes out
             c' = f ∘ c + i ∘ tanh(W_c x + U_c h)
             h' = o ∘ tanh(c')

Every W x and every U h has a bias of its own, left out above. torch computes the cells, but for a
GRU that learns on a CPU (`nn/gated.py`); a test writes them out as above and finds the same numbers.
A state is one tensor (B, C): the hidden vector h, and for the LSTM its cell c behind it.
"""

import warnings
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from seqloom.core.batch import Padded
from seqloom.nn.dropout import Dropout
from seqloom.nn.gated import gated_units

Cell = Literal["rnn", "gru", "lstm"]


class RecurrentLayer(nn.Module):
    """One layer of one kind of cell, run over a sequence or one step at a time."""

    def __init__(
        self, cell: Cell, input_width: int, width: int, weight_dropout: float = 0.0
    ) -> None:
        """weight_dropout: the share of U that a pass goes without in training, the same at every
        position (Merity et al. 2018)"""
        super().__init__()
        self.weight_dropout = Dropout(weight_dropout) if weight_dropout else nn.Identity()
        self.cell: Cell = cell
        self.width = width
        kind = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[cell]
        self.network: nn.RNNBase = kind(input_width, width, batch_first=True)
        # Orthogonal maps of the state neither shrink nor blow up what they carry along.
        for block in self.network.all_weights[0][1].detach().chunk(self._gates):
            nn.init.orthogonal_(block)

    @property
    def _gates(self) -> int:
        return {"rnn": 1, "gru": 3, "lstm": 4}[self.cell]

    @property
    def state_width(self) -> int:
        """C: numbers in a state."""
        return self.width * (2 if self.cell == "lstm" else 1)

    def forward(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """(B, T, D) from state (B, C) -> hidden vectors (B, T, W), last state (B, C)"""
        if self._is_written_out(inputs):
            turned = gated_units(inputs.transpose(0, 1).contiguous(), state, self.weights())
            return turned.transpose(0, 1), turned[-1]
        if not self._drops:
            hidden, last = self.network(inputs, self._unpack(state))
            return hidden, self._pack(last)
        run: Any = {"rnn": torch.rnn_tanh, "gru": torch.gru, "lstm": torch.lstm}[self.cell]
        biases, layers, dropout, training, both_ways, batch_first = True, 1, 0.0, True, False, True
        with warnings.catch_warnings():
            # Weights that are drawn for each pass do lie apart, and a GPU does compact them.
            warnings.filterwarnings("ignore", "RNN module weights are not part of single")
            hidden, *last = run(
                *(inputs, self._unpack(state), self.weights()),
                *(biases, layers, dropout, training, both_ways, batch_first),
            )
        return hidden, torch.cat(last, dim=-1).squeeze(0)

    def _is_written_out(self, inputs: Tensor) -> bool:
        """Is there a way back that is quicker than torch's?"""
        learning = torch.is_grad_enabled() and self.network.all_weights[0][1].requires_grad
        cpu = inputs.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
        return self.cell == "gru" and learning and cpu

    @property
    def _drops(self) -> bool:
        return self.training and isinstance(self.weight_dropout, Dropout)

    def weights(self) -> list[Tensor]:
        """W, U and their biases; of U, in training, what is left of it for one pass."""
        into, along, *biases = self.network.all_weights[0]
        return [into, self.weight_dropout(along), *biases]

    def step(self, inputs: Tensor, state: Tensor, weights: list[Tensor] | None = None) -> Tensor:
        """(B, D) from state (B, C) -> the next state (B, C); its first W numbers are h."""
        weights = self.weights() if weights is None else weights
        match self.cell:
            case "rnn":
                return torch.rnn_tanh_cell(inputs, state, *weights)
            case "gru":
                return torch.gru_cell(inputs, state, *weights)
            case "lstm":
                hidden, cell = state.chunk(2, dim=-1)
                return torch.cat(torch.lstm_cell(inputs, (hidden, cell), *weights), dim=-1)

    def read(self, source: Padded) -> tuple[Tensor, Tensor]:
        """(B, S, D) from a state of zeros -> hidden vectors (B, S, W), state at each row's end.

        The network runs on behind a row's end, and nobody takes notice of what it finds there. To
        stop it (torch's packed sequences) costs far more than the little padding that there is.
        """
        if self.cell == "lstm":
            # torch does not tell the cells on the way, so a row's last one has to be kept.
            waits = source.values.is_cuda or self._drops
            return self.read_in_turn(source) if waits else self._stop(source)
        start = source.values.new_zeros(len(source.lengths), self.state_width)
        hidden, _ = self(source.values, start)
        ends = (source.lengths - 1)[:, None, None].expand(-1, 1, self.width)
        return hidden.masked_fill(~source.mask.unsqueeze(-1), 0), hidden.gather(1, ends).squeeze(1)

    def _stop(self, source: Padded) -> tuple[Tensor, Tensor]:
        """`read` by a network that stops at each row's end. A GPU would wait for the lengths."""
        packed = pack_padded_sequence(
            source.values, source.lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        hidden: PackedSequence
        hidden, last = self.network(packed)
        padded, _ = pad_packed_sequence(
            hidden, batch_first=True, total_length=source.values.shape[1]
        )
        return padded, self._pack(last)

    def read_in_turn(self, source: Padded) -> tuple[Tensor, Tensor]:
        """`read` position by position, each row's state standing still behind its end."""
        mask = source.mask.unsqueeze(-1)  # (B, S, 1)
        state = source.values.new_zeros(len(source.lengths), self.state_width)
        hidden, weights = [], self.weights()
        for inputs, real in zip(source.values.unbind(1), mask.unbind(1), strict=True):
            state = torch.where(real, self.step(inputs, state, weights), state)
            hidden.append(state[:, : self.width])
        return torch.stack(hidden, dim=1).masked_fill(~mask, 0), state

    def _unpack(self, state: Tensor) -> Tensor | tuple[Tensor, ...]:
        """(B, C) -> what torch's layer wants: (1, B, W), or a pair of them."""
        if self.cell == "lstm":
            return tuple(part.unsqueeze(0).contiguous() for part in state.chunk(2, dim=-1))
        return state.unsqueeze(0).contiguous()

    def _pack(self, last: Tensor | tuple[Tensor, Tensor]) -> Tensor:
        return torch.cat(last, dim=-1).squeeze(0) if isinstance(last, tuple) else last.squeeze(0)


def reverse(source: Padded) -> Padded:
    """Each row read from its own end; the padding stays on the right. Its own inverse."""
    length = source.values.shape[1]
    positions = torch.arange(length, device=source.values.device).expand(len(source.lengths), -1)
    mirrored = source.lengths.unsqueeze(1) - 1 - positions  # (B, S)
    index = torch.where(source.mask, mirrored, positions)
    while index.dim() < source.values.dim():
        index = index.unsqueeze(-1)
    return Padded(source.values.gather(1, index.expand_as(source.values)), source.lengths)
