"""Which source word does a target word come from? Alignments, and their written form."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqloom.core.errors import DataError
from seqloom.metrics.merging import NO_WORD, groups_of, merge_words

Alignment = list[tuple[int, int]]
"""Pairs of a source word and a target word, counted from 0."""
SMALLEST = 0.005
"""What is written of a soft alignment: links that are not rounded to 0.00."""


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
    weights, targets, sources = between_words(attention, target_words, source_words)
    if not sources:
        return []
    best = [int(column) for column in weights.argmax(axis=1)]
    return [(sources[column], word) for column, word in zip(best, targets, strict=True)]


def between_words(
    attention: ArrayLike, target_words: Sequence[int], source_words: Sequence[int]
) -> tuple[NDArray[np.float64], list[int], list[int]]:
    """(T, S) -> (T', S') between words alone, and the numbers of the T' and of the S' words.

    What is looked at and is no word, END above all, is left out: rows may add up to less than 1.
    """
    merged = merge_words(attention, target_words, source_words)
    targets = [target_words[group[0]] for group in groups_of(target_words)]
    sources = [source_words[group[0]] for group in groups_of(source_words)]
    rows = [place for place, word in enumerate(targets) if word != NO_WORD]
    columns = [place for place, word in enumerate(sources) if word != NO_WORD]
    shown = merged[np.ix_(rows, columns)]
    return shown, [targets[row] for row in rows], [sources[column] for column in columns]


def format_pharaoh(alignment: Sequence[tuple[int, int]]) -> str:
    """[(0, 0), (1, 2)] -> "0-0 1-2", source before target."""
    return " ".join(f"{source}-{target}" for source, target in alignment)


def format_soft(weights: ArrayLike, targets: Sequence[int], sources: Sequence[int]) -> str:
    """(T, S) between words -> "0-0:0.93 1-0:0.07", target by target, the smallest left out."""
    table = np.asarray(weights, dtype=np.float64)
    return " ".join(
        f"{source}-{target}:{table[row, column]:.2f}"
        for row, target in enumerate(targets)
        for column, source in enumerate(sources)
        if table[row, column] >= SMALLEST
    )


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
