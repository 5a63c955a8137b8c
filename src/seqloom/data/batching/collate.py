"""Collates token ids into a Batch with one text per row.

The decoder inputs are START and the target text. The targets are the target text and END. So each
token of the text is one position later in the inputs than in the targets.
"""

from collections.abc import Sequence

import numpy as np
import torch

from seqloom.core.batch import Batch, Padded, Source
from seqloom.data.corpus.dataset import IntArray
from seqloom.data.corpus.token_store import TokenRows
from seqloom.text.vocabulary import END, PAD, START


def collate_rows(sources: TokenRows | Source | None, targets: TokenRows) -> Batch:
    """Build a batch for teacher forcing.

    At position t, the decoder reads `inputs` up to t and predicts position t of `targets`:

        source   x1 … xS END
        inputs   START y1 … yT
        targets  y1 … yT END

    Because each row contains START or END, no row is empty. So no mean or softmax has an empty
    input.
    """
    source = pad_rows(sources, last=END) if isinstance(sources, TokenRows) else sources
    assert source is None or len(source.values) == len(targets.lengths), "one source per target"
    return Batch(
        source=source,
        inputs=pad_rows(targets, first=START),
        targets=pad_rows(targets, last=END),
    )


def collate(sources: Sequence[IntArray] | None, targets: Sequence[IntArray]) -> Batch:
    """Build a padded batch for teacher forcing from arrays of token ids, one array per text."""
    return collate_rows(None if sources is None else TokenRows.of(sources), TokenRows.of(targets))


def pad_rows(rows: TokenRows, first: int | None = None, last: int | None = None) -> Padded:
    """Pad rows on the right with PAD. Return their values (B, T) and their lengths (B,).

    first: token to add at the start of each row
    last:  token to add at the end of each row
    """
    shift = int(first is not None)
    lengths = rows.lengths + shift + int(last is not None)
    assert lengths.min() > 0, "a row has no tokens"
    values = np.full((len(lengths), lengths.max()), PAD, dtype=np.int64)
    positions = np.arange(values.shape[1] - shift)
    values[:, shift:][positions < rows.lengths[:, None]] = rows.ids
    if first is not None:
        values[:, 0] = first
    if last is not None:
        values[np.arange(len(lengths)), lengths - 1] = last
    return Padded(torch.from_numpy(values), torch.from_numpy(lengths))


def pad_ids(rows: Sequence[IntArray], first: int | None = None, last: int | None = None) -> Padded:
    """Pad arrays of token ids on the right with PAD, so that all have the same length.

    rows:  one array of token ids per text
    first: token to add at the start of each row. Default: none
    last:  token to add at the end of each row. Default: none
    """
    return pad_rows(TokenRows.of(rows), first, last)
