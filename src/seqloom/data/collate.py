"""Examples, as ids, to a Batch."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from seqloom.core.sequences import Batch, Padded
from seqloom.text.vocabulary import END, PAD, START

Ids = NDArray[np.int32]


def collate(sources: Sequence[Ids] | None, targets: Sequence[Ids]) -> Batch:
    """source: x1 … xS END; inputs: START y1 … yT; targets: y1 … yT END.

    With END or START in it no row is ever empty, so no mean or softmax is over nothing.
    """
    assert sources is None or len(sources) == len(targets), "a source for each target"
    source = None if sources is None else pad_ids(sources, last=END)
    return Batch(source, pad_ids(targets, first=START), pad_ids(targets, last=END))


def pad_ids(rows: Sequence[Ids], first: int | None = None, last: int | None = None) -> Padded:
    """Rows with one more token before or after, padded on the right with PAD: (B, T), (B,)"""
    assert len(rows), "a batch has a row at least"
    before = int(first is not None)
    after = int(last is not None)
    lengths = np.array([len(row) for row in rows], dtype=np.int64) + before + after
    assert lengths.min() > 0, "a row without tokens"
    values = np.full((len(rows), lengths.max()), PAD, dtype=np.int64)
    for place, row in enumerate(rows):
        values[place, before : before + len(row)] = row
    if first is not None:
        values[:, 0] = first
    if last is not None:
        values[np.arange(len(rows)), lengths - 1] = last
    return Padded(torch.from_numpy(values), torch.from_numpy(lengths))
