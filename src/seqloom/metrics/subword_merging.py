"""Merges attention between subwords into attention between words.

A[t, s] is the attention weight of the target subword t for the source subword s. The weight of a
target word w for a source word v is the sum over the subwords of v and the mean over the |w|
subwords of w:

    A'[w, v] = 1/|w| Σ_{t in w} Σ_{s in v} A[t, s]

If every row of A sums to 1, every row of A' sums to 1. The total attention to a source word v is
Σ_w |w| A'[w, v]. It is not the sum of a column of A', because each row of A' is a mean over |w|
subwords.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

NO_WORD = -1
"""Word index of a position that belongs to no word, such as END."""


@dataclass(frozen=True)
class AttentionMap:
    """Attention weights with labels.

    outputs: label of each of the T target positions
    sources: label of each of the S source positions
    weights: (T, S), or (T, L, H, S) per layer and head; rows sum to 1
    """

    outputs: tuple[str, ...]
    sources: tuple[str, ...]
    weights: NDArray[np.float64]


def group_positions(words: Sequence[int]) -> list[tuple[int, ...]]:
    """Group consecutive positions that belong to the same word.

    A position that belongs to no word forms a group of its own.

    words: word index of each position, NO_WORD for a position that belongs to no word
    """
    groups: list[tuple[int, ...]] = []
    for position, word in enumerate(words):
        if groups and word != NO_WORD and words[position - 1] == word:
            groups[-1] = (*groups[-1], position)
        else:
            groups.append((position,))
    return groups


def merge_words(
    attention: ArrayLike, target_words: Sequence[int], source_words: Sequence[int]
) -> NDArray[np.float64]:
    """Merge attention between positions (T, ..., S) into attention between words (T', ..., S').

    A position that belongs to no word keeps its own row or column. T' is the number of target words
    plus the number of target positions without a word. S' is the same for the source.

    target_words: word index of each of the T positions, NO_WORD if it belongs to no word
    source_words: word index of each of the S positions, NO_WORD if it belongs to no word
    """
    weights = np.asarray(attention, dtype=np.float64)
    assert (weights.shape[0], weights.shape[-1]) == (len(target_words), len(source_words))
    to_words = weights @ _membership(source_words)  # (T, ..., S')
    members = _membership(target_words)  # (T, T')
    return np.tensordot((members / members.sum(axis=0)).T, to_words, axes=1)


def _membership(words: Sequence[int]) -> NDArray[np.float64]:
    """Return a matrix (positions, words): 1 if the position belongs to the word, else 0.

    A position that belongs to no word has its own column.

    words: word index of each position, NO_WORD for a position that belongs to no word
    """
    groups = group_positions(words)
    members = np.zeros((len(words), len(groups)))
    for column, group in enumerate(groups):
        members[list(group), column] = 1
    return members


def merge_labels(pieces: Sequence[str], words: Sequence[int], text: str) -> tuple[str, ...]:
    """Return one label per word, and one label per position that belongs to no word.

    The label of a word is taken from `text`. If `text` has too few words, the label is the first
    piece of the word. The label of a position without a word is the piece at this position.

    pieces: subword at each position
    words:  word index of each position, NO_WORD for a position that belongs to no word
    """
    text_words = text.split()
    return tuple(
        text_words[words[group[0]]] if 0 <= words[group[0]] < len(text_words) else pieces[group[0]]
        for group in group_positions(words)
    )
