"""Plans batches by token budget: examples of similar lengths form a batch."""

from collections.abc import Iterator

import numpy as np

from seqloom.core.errors import DataError
from seqloom.data.corpus.dataset import IntArray

MAX_BAND_PADDING = 0.05
"""A band is a group of examples with similar target lengths. If all targets of a band were padded
to its longest target, at most this fraction of the tokens would be padding."""
MIN_FILL = 0.25
"""A batch can be closed because of too much padding (see MAX_BATCH_PADDING) only if it fills at
least this fraction of the budget."""
MAX_BATCH_PADDING = 0.06
"""A batch that has reached MIN_FILL is closed if one more example would raise the fraction of
padding of its sources or of its targets above this value."""

CHUNK_SIZE = 2**20
"""Number of examples whose lengths are examined at once."""


def plan_batches(
    source_lengths: IntArray | None, target_lengths: IntArray, budget: int, seed: int, epoch: int
) -> list[IntArray]:
    """Return the batches of an epoch as arrays of example indices.

    The result depends only on the arguments. In each batch, the number of rows times the length of
    the longest source or target is at most `budget`. This length includes START or END.

    The examples are divided into bands of similar target lengths. The examples of a band are sorted
    by source length. The order is ascending in one band and descending in the next, so source
    lengths change little from the end of a band to the start of the next.

    Consecutive examples form a batch. A batch ends when the next example would exceed the budget or
    would add too much padding. Examples of equal lengths are in random order. Finally, the batches
    are shuffled.
    """
    refuse_too_long(source_lengths, target_lengths, budget)
    targets = target_lengths.astype(np.int64) + 1
    sources = targets if source_lengths is None else source_lengths.astype(np.int64) + 1
    generator = np.random.default_rng([seed, epoch])
    shuffled = generator.permutation(len(targets))
    targets, sources = targets[shuffled], sources[shuffled]
    bands = _length_bands(targets)
    alternating = np.where(bands % 2 == 0, sources, -sources)
    order = np.lexsort((targets, alternating, bands))
    boundaries = _batch_boundaries(sources[order], targets[order], budget)
    batches = np.split(shuffled[order], boundaries)
    return [batches[index] for index in generator.permutation(len(batches))]


def _length_bands(targets: IntArray) -> IntArray:
    """Assign examples to bands of similar target lengths. Return each example's band.

    Band 0 has the shortest targets. If all targets of a band were padded to its longest target,
    the fraction of padding would be at most MAX_BAND_PADDING.
    """
    lengths, inverse, counts = np.unique(targets, return_inverse=True, return_counts=True)
    bands = np.zeros_like(lengths)
    band = rows = tokens = 0
    for index, (length, count) in enumerate(zip(lengths.tolist(), counts.tolist(), strict=True)):
        rows += count
        tokens += count * length
        if tokens < (1 - MAX_BAND_PADDING) * rows * length:
            band += 1
            rows, tokens = count, count * length
        bands[index] = band
    return bands[inverse]


def _batch_boundaries(sources: IntArray, targets: IntArray, budget: int) -> list[int]:
    """For every batch except the first, return the index of its first example."""
    boundaries: list[int] = []
    start = 0
    while True:
        # All rows are padded to the longest row, so each row has at least as many tokens as the
        # first example. Therefore the batch ends before `limit`.
        limit = start + budget // int(max(sources[start], targets[start])) + 1
        start += _first_batch_rows(sources[start:limit], targets[start:limit], budget)
        if start == len(sources):
            return boundaries
        boundaries.append(start)


def _first_batch_rows(sources: IntArray, targets: IntArray, budget: int) -> int:
    """Return the number of examples in the first batch, which starts with the first example."""
    rows = np.arange(1, len(sources) + 1)
    padded_source = rows * np.maximum.accumulate(sources)
    padded_target = rows * np.maximum.accumulate(targets)
    size = np.maximum(padded_source, padded_target)
    too_padded = (np.cumsum(sources) < (1 - MAX_BATCH_PADDING) * padded_source) | (
        np.cumsum(targets) < (1 - MAX_BATCH_PADDING) * padded_target
    )
    # An example starts a new batch if it does not fit, or if it would add too much padding to a
    # batch that has reached MIN_FILL.
    closes = (size[1:] > budget) | (too_padded[1:] & (size[:-1] >= MIN_FILL * budget))
    return int(np.argmax(closes)) + 1 if closes.any() else len(rows)


def example_sizes(source_lengths: IntArray | None, target_lengths: IntArray) -> IntArray:
    """Return the length of the source or the target of each example, whichever is longer.

    The length includes START or END.
    """
    if source_lengths is None:
        return target_lengths + 1
    return np.maximum(source_lengths, target_lengths) + 1


def size_chunks(source_lengths: IntArray | None, target_lengths: IntArray) -> Iterator[IntArray]:
    """Yield the sizes of all examples, in arrays of at most CHUNK_SIZE examples.

    The size of an example is the length of its source or its target, whichever is longer. It
    includes START or END.

    The lengths of a large corpus are memory-mapped. They are read in parts, so that the memory use
    does not grow with the corpus.
    """
    for start in range(0, len(target_lengths), CHUNK_SIZE):
        chunk = slice(start, start + CHUNK_SIZE)
        sources = None if source_lengths is None else source_lengths[chunk]
        yield example_sizes(sources, target_lengths[chunk])


def refuse_too_long(source_lengths: IntArray | None, target_lengths: IntArray, budget: int) -> None:
    """Raise a DataError if an example does not fit into a batch."""
    count = worst = longest = start = 0
    for sizes in size_chunks(source_lengths, target_lengths):
        count += int(np.count_nonzero(sizes > budget))
        if sizes.max() > longest:
            longest = int(sizes.max())
            worst = start + int(np.argmax(sizes))
        start += len(sizes)
    if count:
        raise DataError(
            f"{count} of {start} examples are longer than a batch may be: "
            f"example {worst} (counted from 0) has {longest} tokens, and training."
            f"batch_tokens is {budget}; raise it to {longest} or more, or drop long "
            "examples with data.filter.max_source_tokens and max_target_tokens"
        )
