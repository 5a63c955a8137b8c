"""Recurrent layers: one state, carried along the sequence.

    vanilla  h' = tanh(W x + U h)

    GRU      r = σ(W_r x + U_r h)      how much of the past the candidate sees
             z = σ(W_z x + U_z h)      how much of the past stays
             n = tanh(W_n x + r ∘ (U_n h))
             h' = (1 - z) ∘ n + z ∘ h

    LSTM     i, f, o = σ(W x + U h)    what comes in, stays, goes out
             c' = f ∘ c + i ∘ tanh(W_c x + U_c h)
             h' = o ∘ tanh(c')

Every W x and every U h has a bias of its own, left out above. torch computes the cells; a test
writes them out as above and finds the same numbers. A state is one
tensor (B, C): the hidden vector h, and for the LSTM its cell c behind it.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from seqloom.core.sequences import Padded

Cell = Literal["rnn", "gru", "lstm"]


class RecurrentLayer(nn.Module):
    """One layer of one kind of cell, run over a sequence or one step at a time."""

    def __init__(self, cell: Cell, input_width: int, width: int) -> None:
        super().__init__()
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
        hidden, last = self.network(inputs, self._unpack(state))
        return hidden, self._pack(last)

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """(B, D) from state (B, C) -> the next state (B, C); its first W numbers are h."""
        weights = self.network.all_weights[0]  # W, U and their biases
        match self.cell:
            case "rnn":
                return torch.rnn_tanh_cell(inputs, state, *weights)
            case "gru":
                return torch.gru_cell(inputs, state, *weights)
            case "lstm":
                hidden, cell = state.chunk(2, dim=-1)
                return torch.cat(torch.lstm_cell(inputs, (hidden, cell), *weights), dim=-1)

    def read(self, source: Padded) -> tuple[Tensor, Tensor]:
        """(B, S, D) from a state of zeros -> hidden vectors (B, S, W), state at each row's end."""
        if source.values.is_cuda:
            return self.read_without_looking(source)
        # Packed, a row stops at its own end: the last state is that of the last real position.
        packed = pack_padded_sequence(
            source.values, source.lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        hidden: PackedSequence
        hidden, last = self.network(packed)
        padded, _ = pad_packed_sequence(
            hidden, batch_first=True, total_length=source.values.shape[1]
        )
        return padded, self._pack(last)

    def read_without_looking(self, source: Padded) -> tuple[Tensor, Tensor]:
        """As `read`, with no look at the lengths, which would make a GPU wait.

        The network runs on behind a row's end, and nobody takes notice of what it finds there.
        """
        mask = source.mask.unsqueeze(-1)
        if self.cell == "lstm":
            # torch does not tell the cells on the way, so a row's last one has to be kept by hand.
            return self._read_in_turn(source.values, mask)
        hidden, _ = self.network(source.values)
        ends = (source.lengths - 1)[:, None, None].expand(-1, 1, self.width)
        return hidden.masked_fill(~mask, 0), hidden.gather(1, ends).squeeze(1)

    def _read_in_turn(self, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        state = inputs.new_zeros(inputs.shape[0], self.state_width)
        hidden = []
        for position in range(inputs.shape[1]):
            state = torch.where(mask[:, position], self.step(inputs[:, position], state), state)
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
