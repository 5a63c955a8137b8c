"""`misspellings` describes all strings that are one edit away from a word."""

import re

from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.loading.misspellings import find_misspelt, misspellings

LETTERS = st.text("ab_1", max_size=6)


def distance(word: str, other: str) -> int:
    """Return the number of edits: insertions, deletions, replacements and swaps of neighbours."""
    rows = [
        [i + j if i * j == 0 else 0 for j in range(len(other) + 1)] for i in range(len(word) + 1)
    ]
    for i in range(1, len(word) + 1):
        for j in range(1, len(other) + 1):
            replaced = rows[i - 1][j - 1] + (word[i - 1] != other[j - 1])
            rows[i][j] = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, replaced)
            if i > 1 and j > 1 and word[i - 2 : i] == other[j - 2 : j][::-1]:
                rows[i][j] = min(rows[i][j], rows[i - 2][j - 2] + 1)
    return rows[-1][-1]


@given(LETTERS.filter(bool), LETTERS)
def test_the_expression_matches_if_there_is_at_most_one_edit(word: str, other: str) -> None:
    assert bool(re.fullmatch(misspellings(word), other)) == (distance(word, other) <= 1)


@given(st.sampled_from(["steps", "learning_rate", "k"]), st.data())
def test_every_edit_of_a_word_is_found(word: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(word)))
    removed = data.draw(st.integers(0, 1))
    inserted = data.draw(st.sampled_from(["", "x", "é"]))
    other = word[:position] + inserted + word[position + removed :]
    assert find_misspelt(other, ["unrelated", word]) == word


def test_the_longest_word_is_preferred() -> None:
    assert find_misspelt("labes", ["label", "labels"]) == "labels"
    assert find_misspelt("qqqq", ["label", "labels"]) is None
