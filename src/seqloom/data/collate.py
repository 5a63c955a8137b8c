"""Examples, as ids, to a Batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from seqloom.core.batch import Batch, Images, Padded
from seqloom.text.vocabulary import END, PAD, START

Ids = NDArray[Any]
"""Of any kind of integer."""
Sizes = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """The ids of some texts, one after the other, and how many each of them has."""

    ids: Ids
    lengths: Sizes

    @classmethod
    def of(cls, rows: Sequence[Ids]) -> Self:
        assert len(rows), "a batch has a row at least"
        return cls(np.concatenate(rows), np.array([len(row) for row in rows], dtype=np.int64))


def collate(sources: Sequence[Ids] | None, targets: Sequence[Ids]) -> Batch:
    """A batch of texts that lie apart."""
    return collate_rows(None if sources is None else Rows.of(sources), Rows.of(targets))


def collate_rows(sources: Rows | Images | None, targets: Rows) -> Batch:
    """source: x1 … xS END; inputs: START y1 … yT; targets: y1 … yT END.

    With END or START in it no row is ever empty, so no mean or softmax is over nothing.
    """
    source = pad_rows(sources, last=END) if isinstance(sources, Rows) else sources
    assert source is None or len(source.values) == len(targets.lengths), "one for each target"
    return Batch(source, pad_rows(targets, first=START), pad_rows(targets, last=END))


def pad_ids(rows: Sequence[Ids], first: int | None = None, last: int | None = None) -> Padded:
    """Rows with one more token before or after, padded on the right with PAD: (B, T), (B,)"""
    return pad_rows(Rows.of(rows), first, last)


def pad_rows(rows: Rows, first: int | None = None, last: int | None = None) -> Padded:
    """The same for rows that lie one after the other, with no loop over them."""
    before = int(first is not None)
    lengths = rows.lengths + before + int(last is not None)
    assert lengths.min() > 0, "a row without tokens"
    values = np.full((len(lengths), lengths.max()), PAD, dtype=np.int64)
    places = np.arange(values.shape[1] - before)
    values[:, before:][places < rows.lengths[:, None]] = rows.ids
    if first is not None:
        values[:, 0] = first
    if last is not None:
        values[np.arange(len(lengths)), lengths - 1] = last
    return Padded(torch.from_numpy(values), torch.from_numpy(lengths))
