"""Which source word does a target word come from? Alignments, and their written form."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from seqloom.core.errors import DataError

Alignment = list[tuple[int, int]]
"""Pairs of a source word and a target word, counted from 0."""

NO_WORD = -1


def align_words(
    attention: ArrayLike, target_words: Sequence[int], source_words: Sequence[int]
) -> Alignment:
    """For each target word the source word that it looked at most.

    attention:    (T, S) where each target position looked
    target_words: the number of the word that each of the T positions is part of, -1 for none
    source_words: the same for the S positions

    What a target word looks at is the mean over its positions of the attention they pay to all
    positions of a source word together. Pairs come in the order of the target words.
    """
    weights = np.asarray(attention, dtype=np.float64)
    assert weights.shape == (len(target_words), len(source_words))
    sources = sorted(set(source_words) - {NO_WORD})
    targets = sorted(set(target_words) - {NO_WORD})
    if not sources:
        return []
    rows, columns = np.array(target_words), np.array(source_words)
    mass = np.stack([weights[:, columns == word].sum(axis=1) for word in sources], axis=1)
    best = [int(mass[rows == word].mean(axis=0).argmax()) for word in targets]
    return [(sources[column], word) for column, word in zip(best, targets, strict=True)]


def format_pharaoh(alignment: Sequence[tuple[int, int]]) -> str:
    """[(0, 0), (1, 2)] -> "0-0 1-2", source before target."""
    return " ".join(f"{source}-{target}" for source, target in alignment)


def parse_pharaoh(line: str) -> Alignment:
    """ "0-0 1-2" -> [(0, 0), (1, 2)]"""
    pairs, wrong = [], []
    for entry in line.split():
        source, _, target = entry.partition("-")
        if all(number.isascii() and number.isdigit() for number in (source, target)):
            pairs.append((int(source), int(target)))
        else:
            wrong.append(repr(entry))
    if wrong:
        raise DataError(
            f"not an alignment: {', '.join(wrong)}; write source-target pairs such as 0-0 1-2"
        )
    return pairs
