"""Writes texts into a token grid of fixed shape, for packed and bucketed batches."""

import numpy as np
import torch

from seqloom.core.batch import Padded
from seqloom.data.corpus.dataset import IntArray
from seqloom.data.corpus.token_store import TokenRows
from seqloom.text.vocabulary import PAD


class TokenGrid:
    """One side of a batch, (B, T), and the position of each text in it."""

    def __init__(self, shape: tuple[int, int], rows: IntArray, columns: IntArray) -> None:
        """
        rows:    the row of each text, ascending
        columns: the column at which each text starts
        """
        self.shape = shape
        self.rows = rows
        self.starts = rows * shape[1] + columns  # in the flattened grid

    def place(self, texts: TokenRows, first: int | None = None, last: int | None = None) -> Padded:
        """Write the texts, each with one more token at its start or end."""
        flat = np.full(self.shape[0] * self.shape[1], PAD, dtype=np.int64)
        shift = int(first is not None)
        flat[_ranges(self.starts + shift, texts.lengths)] = texts.ids
        if first is not None:
            flat[self.starts] = first
        if last is not None:
            flat[self.starts + texts.lengths] = last
        row_lengths = np.bincount(self.rows, weights=texts.lengths + 1, minlength=self.shape[0])
        return Padded(self._reshape(flat), torch.from_numpy(row_lengths.astype(np.int64)))

    def number(self, lengths: IntArray) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (pairs, positions), both (B, T), for `Packing`.

        pairs:     the number of each position's pair in its row, from 1; 0 for padding
        positions: the position within the pair, from 0
        """
        pairs = np.zeros(self.shape[0] * self.shape[1], dtype=np.int64)
        positions = np.zeros_like(pairs)
        cells = _ranges(self.starts, lengths)
        first_of_row = np.searchsorted(self.rows, self.rows)
        pairs[cells] = np.repeat(np.arange(len(lengths)) - first_of_row + 1, lengths)
        positions[cells] = cells - np.repeat(self.starts, lengths)
        return self._reshape(pairs), self._reshape(positions)

    def _reshape(self, flat: IntArray) -> torch.Tensor:
        return torch.from_numpy(flat.reshape(self.shape))


def _ranges(starts: IntArray, lengths: IntArray) -> IntArray:
    """Concatenate the ranges start, start + 1, … of the given lengths."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1]) + np.repeat(starts - (ends - lengths), lengths)
