"""Which examples travel together: of like lengths, as many as the token budget allows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.core.errors import DataError

Sizes = NDArray[Any]
"""Of any kind of integer."""


BAND = 0.05
"""The share of padding, on the target side, up to which neighbouring target lengths mix."""
FULL_ENOUGH = 0.25
"""A batch that fills this share of the budget may be closed rather than padded further."""
PADDING = 0.06
"""The share of padding, on either side, at which it is closed."""


def plan_batches(
    source_lengths: Sizes | None, target_lengths: Sizes, budget: int, seed: int, epoch: int
) -> list[Sizes]:
    """The batches of an epoch, as arrays of indices. A pure function of its arguments.

    rows x longest sequence <= budget, where a sequence is a source with its END or a target with
    its START or END. Examples are sorted by bands of like target lengths and, within a band, by
    source length: upwards for one, downwards for the next, so that source lengths run on where
    bands change. A batch ends where the budget does, or earlier where rare lengths would be
    padded too much. Equal lengths, and the order of the batches, are shuffled.
    """
    refuse_too_long(sizes_of(source_lengths, target_lengths), budget)
    targets = target_lengths.astype(np.int64) + 1
    sources = targets if source_lengths is None else source_lengths.astype(np.int64) + 1
    generator = np.random.default_rng([seed, epoch])
    shuffled = generator.permutation(len(targets))
    targets, sources = targets[shuffled], sources[shuffled]
    band = _bands(targets)
    to_and_fro = np.where(band % 2 == 0, sources, -sources)
    order = np.lexsort((targets, to_and_fro, band))
    cuts = _cuts(sources[order], targets[order], budget)
    batches = np.split(shuffled[order], cuts)
    return [batches[place] for place in generator.permutation(len(batches))]


def _bands(targets: Sizes) -> Sizes:
    """The band of every example, counted from the shortest. A band padded to its longest target
    would be padding by BAND at most."""
    lengths, place, counts = np.unique(targets, return_inverse=True, return_counts=True)
    bands = np.zeros_like(lengths)
    band = rows = tokens = 0
    for at, (length, count) in enumerate(zip(lengths.tolist(), counts.tolist(), strict=True)):
        rows += count
        tokens += count * length
        if tokens < (1 - BAND) * rows * length:
            band += 1
            rows, tokens = count, count * length
        bands[at] = band
    return bands[place]


def _cuts(sources: Sizes, targets: Sizes, budget: int) -> list[int]:
    """Where a new batch begins, but for the first."""
    cuts: list[int] = []
    start = 0
    while True:
        # No batch from here has more rows than would fit if all were as short as its first.
        reach = start + budget // int(max(sources[start], targets[start])) + 1
        start += _rows_of_first(sources[start:reach], targets[start:reach], budget)
        if start == len(sources):
            return cuts
        cuts.append(start)


def _rows_of_first(sources: Sizes, targets: Sizes, budget: int) -> int:
    """How many of these go into the first batch."""
    rows = np.arange(1, len(sources) + 1)
    padded_source = rows * np.maximum.accumulate(sources)
    padded_target = rows * np.maximum.accumulate(targets)
    size = np.maximum(padded_source, padded_target)
    too_padded = (np.cumsum(sources) < (1 - PADDING) * padded_source) | (
        np.cumsum(targets) < (1 - PADDING) * padded_target
    )
    # The next row goes elsewhere if it does not fit, or pads too much what is full enough.
    leaves = (size[1:] > budget) | (too_padded[1:] & (size[:-1] >= FULL_ENOUGH * budget))
    return int(np.argmax(leaves)) + 1 if leaves.any() else len(rows)


def sizes_of(source_lengths: Sizes | None, target_lengths: Sizes) -> Sizes:
    """The longer side of each example, with its START or END."""
    if source_lengths is None:
        return target_lengths + 1
    return np.maximum(source_lengths, target_lengths) + 1


def refuse_too_long(sizes: Sizes, budget: int) -> None:
    """No example may be longer than a whole batch."""
    too_long = np.flatnonzero(sizes > budget)
    if len(too_long):
        worst = too_long[np.argmax(sizes[too_long])]
        raise DataError(
            f"{len(too_long)} of {len(sizes)} examples are longer than a whole batch may be: "
            f"example {worst} (counted from 0) has {sizes[worst]} tokens, and training."
            f"batch_tokens is {budget}; raise it to {sizes[worst]} or more, or leave long "
            "examples out with data.filter.max_source_tokens and max_target_tokens"
        )
