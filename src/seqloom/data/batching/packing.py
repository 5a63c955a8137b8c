"""PackedLayout: several source-target pairs per row, in rows of one fixed length.

There is hardly any padding. Nearly all batches have the same shape, so that one captured CUDA
graph can be replayed for them. This layout is for Transformers only, because they can separate the
pairs of a row with attention masks.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from seqloom.core.batch import Batch, Packing, Padded
from seqloom.data.batching.layout import example_sizes, refuse_too_long, size_chunks
from seqloom.data.corpus.corpus import Corpus
from seqloom.data.corpus.dataset import Dataset, IntArray
from seqloom.data.corpus.token_store import TokenRows
from seqloom.text.vocabulary import END, PAD, START


class TokenGrid:
    """Assigns each text a row and a column in a (B, T) tensor. The tensor holds either the sources
    or the targets of a batch. A row can hold several texts. START or END is added to each text."""

    def __init__(
        self, shape: tuple[int, int], rows: IntArray, columns: IntArray, texts: TokenRows
    ) -> None:
        """Place texts in the tensor.

        shape:   (B, T), the shape of the tensor
        rows:    the row of each text, in ascending order
        columns: the column at which each text starts
        texts:   the texts, without START and END
        """
        self.shape = shape
        self.rows = rows
        self.starts = rows * shape[1] + columns  # indices into the flattened (B, T) tensor
        self.lengths = texts.lengths + 1
        self.tokens = np.full(shape[0] * shape[1], PAD, dtype=np.int64)  # the flattened tensor
        self.tokens[_ranges(self.starts, texts.lengths)] = texts.ids
        row_lengths = np.bincount(rows, weights=self.lengths, minlength=shape[0])
        self.row_lengths = torch.from_numpy(row_lengths.astype(np.int64))

    def starting_with(self, token: int) -> Padded:
        """Return token ids (B, T) with `token` before each text, and the length of each row."""
        tokens = np.full_like(self.tokens, PAD)
        tokens[1:] = self.tokens[:-1]
        tokens[self.starts] = token
        return Padded(self._reshape(tokens), self.row_lengths)

    def ending_with(self, token: int) -> Padded:
        """Return token ids (B, T) with `token` after each text, and the length of each row."""
        tokens = self.tokens.copy()
        tokens[self.starts + self.lengths - 1] = token
        # `BucketLayout.gather` changes the lengths of the sources in place.
        return Padded(self._reshape(tokens), self.row_lengths.clone())

    def pairs_and_positions(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return two (B, T) tensors, with which a model can tell apart the pairs of a row.

        The first tensor holds, for each token, the number of its pair. Pairs are counted from 1 in
        each row. Padding has the number 0.
        The second tensor holds, for each token, its position within its text, counted from 0.
        """
        pairs = np.zeros_like(self.tokens)
        positions = np.zeros_like(pairs)
        cells = _ranges(self.starts, self.lengths)
        first_of_row = np.searchsorted(self.rows, self.rows)
        pairs[cells] = np.repeat(np.arange(len(self.lengths)) - first_of_row + 1, self.lengths)
        positions[cells] = cells - np.repeat(self.starts, self.lengths)
        return self._reshape(pairs), self._reshape(positions)

    def _reshape(self, flat: IntArray) -> torch.Tensor:
        return torch.from_numpy(flat.reshape(self.shape))


def _ranges(starts: IntArray, lengths: IntArray) -> IntArray:
    """Concatenate the ranges start, start + 1, …, start + length - 1 of all texts.

    Example: starts [0, 5] and lengths [2, 3] give [0, 1, 5, 6, 7].

    starts, lengths: (N,) start and length of each of the N texts
    """
    ends = np.cumsum(lengths)
    return np.arange(ends[-1]) + np.repeat(starts - (ends - lengths), lengths)


PAIRS_AT_ONCE = 16_384
"""Number of pairs that one call of `fill_rows` divides into rows. These pairs are consecutive in
the random order of the epoch. A larger number would lead to slightly less padding."""
SHORT_SHARE = 0.2
"""A pair is short if at most this share of the pairs is shorter."""
MAX_REST = 1
"""A row counts as full if at most this many positions are free, sources and targets together."""
MAX_RESERVING_LENGTH = 256
"""Maximum length of rows in which space may be reserved for short pairs. Longer rows contain many pairs
and little padding in any case, and filling them in this way would take more time."""
BATCH_SIZES = 128
"""Maximum number of different numbers of rows of a batch. Each needs its own CUDA graph."""
MIN_ROW_LENGTH = 64
"""Minimum row length in tokens. Attention kernels work on blocks of about this size, so shorter
rows would not be faster."""


def row_length(source_lengths: IntArray | None, target_lengths: IntArray) -> int:
    """Return the row length to use for pairs of these lengths.

    The row length is the smallest power of two that is at least twice the 95th percentile of the
    pair lengths and at least MIN_ROW_LENGTH, so that a row holds several pairs. In longer rows, the
    fraction of padding would be smaller, but attention would cost more per token.
    """
    percentile = _percentile_95(size_chunks(source_lengths, target_lengths))
    return max(MIN_ROW_LENGTH, 1 << int(np.ceil(np.log2(2 * percentile))))


def _percentile_95(chunks: Iterator[IntArray]) -> float:
    """Return the 95th percentile of sizes, computed in constant memory.

    The result equals that of np.percentile.

    chunks: the sizes, which are positive integers, in several arrays
    """
    counts = np.zeros(1, dtype=np.int64)  # counts[n] is how many sizes are n
    for sizes in chunks:
        added = np.bincount(sizes, minlength=len(counts))
        added[: len(counts)] += counts
        counts = added
    ends = np.cumsum(counts)
    position = 0.95 * (ends[-1] - 1)
    below, above = np.searchsorted(ends, (np.floor(position), np.ceil(position)), side="right")
    return float(below + (above - below) * (position - np.floor(position)))


@dataclass(frozen=True)
class PackedLayout:
    """Places several source-target pairs in each row of a batch.

    A pair with a source or target longer than `length` goes to another batch, in which the rows
    are longer: 2, 4, … times `length` tokens, but at most `budget`. A batch has at most as many
    rows as fit in `budget`. The rows of an epoch are distributed evenly over its batches, so that the last
    batch is not nearly empty.

    budget: maximum number of source tokens in a batch, including padding. The maximum for target
            tokens is the same
    length: length of a row in tokens, for sources and for targets
    """

    budget: int
    length: int

    def plan(
        self, source_lengths: IntArray | None, target_lengths: IntArray, seed: int, epoch: int
    ) -> list[IntArray]:
        """Return the batches of an epoch as arrays of pair indices.

        The arrays do not contain the row boundaries. The pairs of the first row come first, then
        those of the second row, and so on. `gather` fills the rows in this order. It starts a new
        row when a pair does not fit.
        """
        sizes = example_sizes(source_lengths, target_lengths)
        refuse_too_long(source_lengths, target_lengths, self.budget)
        generator = np.random.default_rng([seed, epoch])
        shuffled = generator.permutation(len(sizes))
        targets = target_lengths + 1
        sources = targets if source_lengths is None else source_lengths + 1
        row_lengths = self._row_lengths(sizes[shuffled])
        batches: list[IntArray] = []
        for length in np.unique(row_lengths).tolist():
            pairs = shuffled[row_lengths == length]
            rows: list[list[int]] = []
            reserve = _reserves_space(pairs[:PAIRS_AT_ONCE], sources, targets, length)
            for start in range(0, len(pairs), PAIRS_AT_ONCE):
                block = pairs[start : start + PAIRS_AT_ONCE]
                filled = fill_rows(block, sources[block], targets[block], length, reserve)
                rows += [filled[index] for index in generator.permutation(len(filled))]
            batches += _join_rows(rows, self.budget // length)
        return [batches[index] for index in generator.permutation(len(batches))]

    def refuse_too_long(self, source_lengths: IntArray | None, target_lengths: IntArray) -> None:
        refuse_too_long(source_lengths, target_lengths, self.budget)

    def gather(self, corpus: Dataset, indices: IntArray) -> Batch:
        assert isinstance(corpus, Corpus), "PackedLayout requires a Corpus"
        targets = corpus.targets.take(indices)
        sources = None if corpus.sources is None else corpus.sources.take(indices)
        assert sources is None or isinstance(sources, TokenRows), "only text can be packed"
        source_lengths = targets.lengths if sources is None else sources.lengths
        sizes = np.maximum(source_lengths, targets.lengths) + 1
        length = int(self._row_lengths(sizes).max())
        positions = _pair_positions(source_lengths + 1, targets.lengths + 1, length)
        shape = (_round_up(int(positions.rows[-1]) + 1, self.budget // length), length)
        source = None
        source_pairs = source_positions = torch.zeros(shape[0], 0, dtype=torch.long)
        if sources is not None:
            source_grid = TokenGrid(shape, positions.rows, positions.source_columns, sources)
            source = source_grid.ending_with(END)
            source_pairs, source_positions = source_grid.pairs_and_positions()
        target_grid = TokenGrid(shape, positions.rows, positions.target_columns, targets)
        target_pairs, target_positions = target_grid.pairs_and_positions()
        return Batch(
            source=source,
            inputs=target_grid.starting_with(START),
            targets=target_grid.ending_with(END),
            packing=Packing(source_pairs, target_pairs, source_positions, target_positions),
        )

    def _row_lengths(self, sizes: IntArray) -> IntArray:
        """Return, for each pair size, the length of the rows that hold pairs of this size."""
        doublings = np.ceil(np.log2(np.maximum(sizes, self.length) / self.length)).astype(np.int64)
        return np.minimum(self.length << doublings, self.budget)


def _reserves_space(pairs: IntArray, sources: IntArray, targets: IntArray, length: int) -> bool:
    """Return True if these pairs need fewer rows when space is reserved for short pairs.

    pairs:            indices of the pairs
    sources, targets: source and target lengths of all pairs, including START or END
    length:           number of tokens in a row
    """
    if length > MAX_RESERVING_LENGTH:
        return False
    counts = [
        len(fill_rows(pairs, sources[pairs], targets[pairs], length, reserve))
        for reserve in (False, True)
    ]
    return counts[1] < counts[0]


def fill_rows(
    pairs: IntArray, sources: IntArray, targets: IntArray, length: int, reserve: bool = False
) -> list[list[int]]:
    """Divide pairs into rows. Return, for each row, the indices of its pairs.

    Rows are filled one after the other (see `_fill_row`). The length of a pair is here the sum of its
    source length and its target length. The first rows contain the longest pairs, so the caller has to
    shuffle the rows.

    pairs:            (N,) indices of the pairs
    sources, targets: (N,) source and target lengths of the pairs, including START or END
    length:           number of tokens in a row
    reserve:          prefer pairs that leave space for a short pair. Default: False. In short rows this often
                      leads to less padding, but not if sources and targets differ much in length
    """
    # For each total length, the remaining pairs of this total: their differences "source - target"
    # in ascending order, and their indices.
    totals, differences = sources + targets, sources - targets
    order = np.lexsort((differences, totals))
    ends = np.searchsorted(totals[order], np.arange(2 * length + 1), side="right").tolist()
    sorted_differences, sorted_pairs = differences[order].tolist(), pairs[order].tolist()
    remaining = [
        (sorted_differences[start:end], sorted_pairs[start:end])
        for start, end in zip([0, *ends], ends, strict=False)
    ]
    short = int(np.quantile(totals, SHORT_SHARE)) if reserve else 0
    longest = 2 * length
    rows: list[list[int]] = []
    while True:
        while longest and not remaining[longest][0]:
            longest -= 1
        if not longest:
            return rows
        rows.append(_fill_row(remaining, length, longest, short))


def _fill_row(
    remaining: list[tuple[list[int], list[int]]], length: int, longest: int, short: int
) -> list[int]:
    """Remove pairs for one row from `remaining`. Return their indices.

    A row first takes a pair that fills it. Otherwise it takes the longest pair that leaves space for a
    pair of length `short`. If there is none, it takes the longest pair that fits. Among pairs of equal
    length, it takes the one after which the free spaces for sources and for targets differ least.

    remaining: for each total length, the differences and the indices of the remaining pairs
    length:    number of tokens in a row
    longest:   total length of the longest remaining pair
    short:     total length of a short pair; 0 to leave no space
    """
    row: list[int] = []
    free_source = free_target = length
    while True:
        free = free_source + free_target
        full = free - MAX_REST
        with_space = max(min(free - short, full - 1), 0)
        for first, last in ((free, full), (with_space, 1), (full - 1, with_space + 1)):
            total = _find_pair(
                remaining, min(first, longest), max(last, 1), free_source, free_target
            )
            if total:
                break
        else:
            return row
        by_difference, indices = remaining[total]
        place = _nearest(by_difference, free_source - free_target)
        source = (total + by_difference.pop(place)) // 2
        row.append(indices.pop(place))
        free_source -= source
        free_target -= total - source


def _find_pair(
    remaining: list[tuple[list[int], list[int]]],
    first: int,
    last: int,
    free_source: int,
    free_target: int,
) -> int:
    """Return the largest total length, from `first` down to `last`, of a pair that fits; 0 if none fits."""
    wanted = free_source - free_target
    for total in range(first, last - 1, -1):
        differences = remaining[total][0]
        if differences:
            # If this pair does not fit, no pair of this length does.
            source = (total + differences[_nearest(differences, wanted)]) // 2
            if source <= free_source and total - source <= free_target:
                return total
    return 0


def _nearest(numbers: list[int], wanted: int) -> int:
    """Return the index of the number that is nearest to `wanted`. The numbers are in ascending order."""
    place = bisect_left(numbers, wanted)
    if place == len(numbers):
        return place - 1
    if place and wanted - numbers[place - 1] < numbers[place] - wanted:
        return place - 1
    return place


def _join_rows(rows: list[list[int]], max_rows: int) -> list[IntArray]:
    """Distribute rows evenly over as few batches as possible.

    rows:     for each row, the indices of its pairs
    max_rows: maximum number of rows in a batch

    Returns one array per batch: the indices of all its pairs, row after row.
    """
    count = -(-len(rows) // max_rows)
    bounds = [len(rows) * number // count for number in range(count + 1)]
    return [
        np.array([index for row in rows[start:end] for index in row], dtype=np.int64)
        for start, end in pairwise(bounds)
    ]


def _round_up(rows: int, max_rows: int) -> int:
    """Return a number of rows, rounded up to one of at most BATCH_SIZES numbers up to `max_rows`."""
    step = max(2, -(-max_rows // BATCH_SIZES))
    return min(max_rows, -(-rows // step) * step)


@dataclass(frozen=True)
class _PairPositions:
    """The row of each pair, and the columns at which its source and its target start."""

    rows: IntArray
    source_columns: IntArray
    target_columns: IntArray


def _pair_positions(sources: IntArray, targets: IntArray, length: int) -> _PairPositions:
    """Assign pairs to rows in the given order. A pair that does not fit starts a new row.

    For pairs in this order, no other assignment needs fewer rows. So a batch never needs more rows
    than `PackedLayout.plan` has planned for it.
    """
    source_ends, target_ends = np.cumsum(sources), np.cumsum(targets)
    source_list, target_list = source_ends.tolist(), target_ends.tolist()
    firsts: list[int] = []  # the first pair of each row
    first = source_start = target_start = 0
    while first < len(source_list):
        firsts.append(first)
        first = min(
            bisect_right(source_list, source_start + length),
            bisect_right(target_list, target_start + length),
        )
        source_start, target_start = source_list[first - 1], target_list[first - 1]
    counts = np.diff([*firsts, len(source_list)])
    rows = np.repeat(np.arange(len(firsts)), counts)
    source_starts, target_starts = source_ends - sources, target_ends - targets
    return _PairPositions(
        rows,
        source_starts - np.repeat(source_starts[firsts], counts),
        target_starts - np.repeat(target_starts[firsts], counts),
    )
