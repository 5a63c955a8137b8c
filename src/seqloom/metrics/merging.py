"""Attention between pieces as attention between words, with nothing lost.

A word is looked at as much as all its pieces together, and looks where its pieces look on average:

    A'[w, v] = 1/|w| Σ_{t in w} Σ_{s in v} A[t, s]

so that a row that adds up to 1 still does, and the rows of a word, each counted as often as the
word has pieces, hold what the rows of its pieces held.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

NO_WORD = -1
"""What a position is part of that is part of no word: END, say."""


@dataclass(frozen=True)
class AttentionMap:
    """Where each output looked.

    outputs: what was put out, T labels
    sources: what was read, S labels
    weights: (T, S), or (T, L, H, S) layer by layer and head by head; rows add up to 1
    """

    outputs: tuple[str, ...]
    sources: tuple[str, ...]
    weights: NDArray[np.float64]


def groups_of(words: Sequence[int]) -> list[tuple[int, ...]]:
    """The positions of each word, in order; a position of no word stands alone."""
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
    """(T, …, S) between positions -> (T', …, S') between words.

    target_words: the number of the word that each of the T positions is part of, -1 for none
    source_words: the same for the S positions
    """
    weights = np.asarray(attention, dtype=np.float64)
    assert (weights.shape[0], weights.shape[-1]) == (len(target_words), len(source_words))
    together = weights @ _membership(source_words)  # (T, …, S')
    members = _membership(target_words)  # (T, T')
    return np.tensordot((members / members.sum(axis=0)).T, together, axes=1)


def _membership(words: Sequence[int]) -> NDArray[np.float64]:
    """(positions, words): 1 where a position is part of a word."""
    groups = groups_of(words)
    members = np.zeros((len(words), len(groups)))
    for column, group in enumerate(groups):
        members[list(group), column] = 1
    return members


def merge_labels(pieces: Sequence[str], words: Sequence[int], text: str) -> tuple[str, ...]:
    """What to call each word: itself, as it stands in the text; a piece of no word as it is."""
    spoken = text.split()
    return tuple(
        spoken[words[group[0]]] if 0 <= words[group[0]] < len(spoken) else pieces[group[0]]
        for group in groups_of(words)
    )
