"""Batches of a few fixed shapes, for machines that repeat what they have seen once far faster.

PackedLayout   several pairs side by side in rows of one length: nearly no padding, and one
               shape for all batches (Transformers)
BucketLayout   a pair a row, padded to one of a few lengths (models that carry a state along)
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from seqloom.core.batch import Batch, Images, Packing, Padded, Source
from seqloom.data.batching import Sizes, refuse_too_long
from seqloom.data.collate import Rows
from seqloom.data.corpus import Corpus
from seqloom.data.examples import Examples
from seqloom.text.vocabulary import END, PAD, START

OPEN_ROWS = 16
"""Rows that wait for a pair that still fits. More of them fill up a little better, more slowly."""
SHORTEST = 64
"""No row is shorter: attention works on blocks of about this size anyway."""
FINEST = 4
"""Lengths of buckets are multiples of this, and never nearer to each other than an eighth."""


def row_length(source_lengths: Sizes | None, target_lengths: Sizes) -> int:
    """A power of two that holds two pairs of nearly any length: rows fill up when pairs are short
    beside them, and attention over a row costs more the longer it is."""
    long = float(np.percentile(_sizes(source_lengths, target_lengths), 95))
    return max(SHORTEST, 1 << int(np.ceil(np.log2(2 * long))))


@dataclass(frozen=True)
class PackedLayout:
    """Rows of `length` tokens on either side, as many as the budget allows.

    Pairs that are longer get batches of their own, of rows twice as long, or four times, and so on.
    """

    budget: int
    length: int

    def plan(
        self, source_lengths: Sizes | None, target_lengths: Sizes, seed: int, epoch: int
    ) -> list[Sizes]:
        """In a random order, row by row; each row's pairs follow each other."""
        sizes = _sizes(source_lengths, target_lengths)
        refuse_too_long(sizes, self.budget)
        generator = np.random.default_rng([seed, epoch])
        shuffled = generator.permutation(len(sizes))
        sources = _lengths(source_lengths, target_lengths)
        targets = target_lengths + 1
        classes = self._classes(sizes[shuffled])
        batches: list[Sizes] = []
        for row in np.unique(classes).tolist():
            chosen = shuffled[classes == row]
            rows = fill_rows(chosen, sources[chosen], targets[chosen], row)
            batches += _groups(rows, self.budget // row)
        return [batches[place] for place in generator.permutation(len(batches))]

    def refuse_too_long(self, source_lengths: Sizes | None, target_lengths: Sizes) -> None:
        refuse_too_long(_sizes(source_lengths, target_lengths), self.budget)

    def gather(self, corpus: Examples, indices: Sizes) -> Batch:
        assert isinstance(corpus, Corpus), "tokens can be laid out so"
        source, target = corpus.source_side, corpus.target_side
        targets = target.take(indices)
        sources = None if source is None else source.take(indices)
        assert not isinstance(sources, Images), "a row of a batch has one image"
        reading = targets.lengths if sources is None else sources.lengths
        sizes = np.maximum(reading, targets.lengths) + 1
        row = int(self._classes(sizes).max())
        places = _places(reading + 1, targets.lengths + 1, row)
        shape = (self.budget // row, row)
        read = None
        source_pairs = source_positions = torch.zeros(shape[0], 0, dtype=torch.long)
        if sources is not None:
            sheet = _Sheet(shape, places.rows, places.sources)
            read = sheet.lay(sources, last=END)
            source_pairs, source_positions = sheet.number(sources.lengths + 1)
        sheet = _Sheet(shape, places.rows, places.targets)
        target_pairs, target_positions = sheet.number(targets.lengths + 1)
        packing = Packing(source_pairs, target_pairs, source_positions, target_positions)
        inputs, answers = sheet.lay(targets, first=START), sheet.lay(targets, last=END)
        return Batch(read, inputs, answers, packing)

    def _classes(self, sizes: Sizes) -> Sizes:
        """The length of the rows that pairs of these sizes lie in."""
        doublings = np.ceil(np.log2(np.maximum(sizes, self.length) / self.length)).astype(np.int64)
        return np.minimum(self.length << doublings, self.budget)


def fill_rows(chosen: Sizes, sources: Sizes, targets: Sizes, length: int) -> Iterator[list[int]]:
    """Put each pair into the oldest row that has room for it on both sides."""
    rooms: list[list[int]] = []
    members: list[list[int]] = []
    for index, source, target in zip(
        chosen.tolist(), sources.tolist(), targets.tolist(), strict=True
    ):
        for place, room in enumerate(rooms):
            if room[0] >= source and room[1] >= target:
                room[0] -= source
                room[1] -= target
                members[place].append(index)
                break
        else:
            if len(rooms) == OPEN_ROWS:
                del rooms[0]
                yield members.pop(0)
            rooms.append([length - source, length - target])
            members.append([index])
    yield from members


def _groups(rows: Iterator[list[int]], size: int) -> list[Sizes]:
    """Batches of this many rows, each as one list of pairs."""
    groups: list[list[int]] = []
    for number, row in enumerate(rows):
        if number % size == 0:
            groups.append([])
        groups[-1] += row
    return [np.array(group, dtype=np.int64) for group in groups]


@dataclass(frozen=True)
class _Places:
    """The row of each pair, and where in it its source and its target begin."""

    rows: Sizes
    sources: Sizes
    targets: Sizes


def _places(sources: Sizes, targets: Sizes, length: int) -> _Places:
    """Pairs in their order, a new row whenever one does not fit.

    No cut of an ordered list into rows needs fewer of them, so what was planned row by row
    always finds room.
    """
    row = source_end = target_end = 0
    found: list[tuple[int, int, int]] = []
    for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
        if source_end + source > length or target_end + target > length:
            row, source_end, target_end = row + 1, 0, 0
        found.append((row, source_end, target_end))
        source_end, target_end = source_end + source, target_end + target
    rows, source_starts, target_starts = np.array(found, dtype=np.int64).T
    return _Places(rows, source_starts, target_starts)


class _Sheet:
    """A side of a batch, (B, row) numbers, on which texts are laid out."""

    def __init__(self, shape: tuple[int, int], rows: Sizes, starts: Sizes) -> None:
        self.shape = shape
        self.rows = rows
        self.starts = rows * shape[1] + starts  # in the flat sheet

    def lay(self, texts: Rows, first: int | None = None, last: int | None = None) -> Padded:
        """Texts with one more token before or after each."""
        flat = np.full(self.shape[0] * self.shape[1], PAD, dtype=np.int64)
        before = int(first is not None)
        flat[_runs(self.starts + before, texts.lengths)] = texts.ids
        if first is not None:
            flat[self.starts] = first
        if last is not None:
            flat[self.starts + texts.lengths] = last
        filled = np.bincount(self.rows, weights=texts.lengths + 1, minlength=self.shape[0])
        return Padded(self._shaped(flat), torch.from_numpy(filled.astype(np.int64)))

    def number(self, lengths: Sizes) -> tuple[torch.Tensor, torch.Tensor]:
        """The pair of each position, from 1 in every row, and its place in the pair."""
        pairs = np.zeros(self.shape[0] * self.shape[1], dtype=np.int64)
        positions = np.zeros_like(pairs)
        where = _runs(self.starts, lengths)
        first_of_row = np.searchsorted(self.rows, self.rows)
        pairs[where] = np.repeat(np.arange(len(lengths)) - first_of_row + 1, lengths)
        positions[where] = where - np.repeat(self.starts, lengths)
        return self._shaped(pairs), self._shaped(positions)

    def _shaped(self, flat: Sizes) -> torch.Tensor:
        return torch.from_numpy(flat.reshape(self.shape))


def _runs(starts: Sizes, lengths: Sizes) -> Sizes:
    """start, start + 1, … of each run, one run after the other."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1]) + np.repeat(starts - (ends - lengths), lengths)


@dataclass(frozen=True)
class BucketLayout:
    """A pair a row, both sides padded to one of a few lengths, and always as many rows.

    Rows that no pair is left for have nothing to answer, so they add nothing to a loss.
    """

    budget: int

    def plan(
        self, source_lengths: Sizes | None, target_lengths: Sizes, seed: int, epoch: int
    ) -> list[Sizes]:
        sizes = _sizes(source_lengths, target_lengths)
        refuse_too_long(sizes, self.budget)
        generator = np.random.default_rng([seed, epoch])
        shuffled = generator.permutation(len(sizes))
        classes = self._classes(sizes[shuffled])
        batches: list[Sizes] = []
        for length in np.unique(classes).tolist():
            chosen = shuffled[classes == length]
            rows = self.budget // length
            batches += [chosen[start : start + rows] for start in range(0, len(chosen), rows)]
        return [batches[place] for place in generator.permutation(len(batches))]

    def refuse_too_long(self, source_lengths: Sizes | None, target_lengths: Sizes) -> None:
        refuse_too_long(_sizes(source_lengths, target_lengths), self.budget)

    def gather(self, corpus: Examples, indices: Sizes) -> Batch:
        assert isinstance(corpus, Corpus), "tokens can be laid out so"
        source = corpus.source_side
        targets = corpus.target_side.take(indices)
        sources = None if source is None else source.take(indices)
        reading = sources.lengths if isinstance(sources, Rows) else targets.lengths
        length = int(self._classes(np.maximum(reading, targets.lengths) + 1).max())
        shape = (self.budget // length, length)
        rows = np.arange(len(indices))
        sheet = _Sheet(shape, rows, np.zeros_like(rows))
        if not isinstance(sources, Rows):
            read: Source | None = None if sources is None else _more(sources, shape[0])
        else:
            read = sheet.lay(sources, last=END)
            # An attention over nothing has no mean: where there is no pair there is still an END.
            read.values[len(indices) :, 0] = END
            read.lengths[len(indices) :] = 1
        return Batch(read, sheet.lay(targets, first=START), sheet.lay(targets, last=END))

    def _classes(self, sizes: Sizes) -> Sizes:
        """The length that sequences of these sizes are padded to."""
        step = 1 << np.maximum(np.floor(np.log2(sizes)).astype(np.int64) - 3, 0)
        step = np.maximum(step, FINEST)
        return np.minimum(-(-sizes // step) * step, self.budget)


def _more(images: Images, rows: int) -> Images:
    """Black ones behind them, so that there are so many."""
    values = images.values
    black = values.new_zeros(rows - len(values), *values.shape[1:])
    return Images(torch.cat([values, black]))


def _lengths(source_lengths: Sizes | None, target_lengths: Sizes) -> Sizes:
    """Tokens to be read, END included; where there is no source, as many as there are targets."""
    return (target_lengths if source_lengths is None else source_lengths) + 1


def _sizes(source_lengths: Sizes | None, target_lengths: Sizes) -> Sizes:
    """The longer side of each pair, with its START or END."""
    return np.maximum(_lengths(source_lengths, target_lengths), target_lengths + 1)
