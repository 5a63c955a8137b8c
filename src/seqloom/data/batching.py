"""Which examples travel together: of like lengths, as many as the token budget allows."""

import numpy as np
from numpy.typing import NDArray

from seqloom.core.errors import DataError

Sizes = NDArray[np.int64]


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
    targets = np.asarray(target_lengths) + 1
    sources = targets if source_lengths is None else np.asarray(source_lengths) + 1
    refuse_too_long(np.maximum(sources, targets), budget)
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
    cuts = []
    enough = FULL_ENOUGH * budget
    start = size = widest_source = widest_target = source_tokens = target_tokens = 0
    for place, (source, target) in enumerate(zip(sources.tolist(), targets.tolist(), strict=True)):
        rows = place - start + 1
        source_tokens += source
        target_tokens += target
        if source > widest_source:
            widest_source = source
        if target > widest_target:
            widest_target = target
        # `size` is still that of the batch without this example.
        too_padded = size >= enough and (
            source_tokens < (1 - PADDING) * rows * widest_source
            or target_tokens < (1 - PADDING) * rows * widest_target
        )
        size = rows * (widest_source if widest_source > widest_target else widest_target)
        if too_padded or size > budget:
            cuts.append(place)
            start = place
            widest_source = source_tokens = source
            widest_target = target_tokens = target
            size = source if source > target else target
    return cuts


def refuse_too_long(longest: Sizes, budget: int) -> None:
    too_long = np.flatnonzero(longest > budget)
    if len(too_long):
        worst = too_long[np.argmax(longest[too_long])]
        raise DataError(
            f"{len(too_long)} of {len(longest)} examples are longer than a whole batch may be: "
            f"example {worst} (counted from 0) has {longest[worst]} tokens, and training."
            f"batch_tokens is {budget}; raise it to {longest[worst]} or more, or leave long "
            "examples out with data.filter.max_source_tokens and max_target_tokens"
        )
