"""Scores by the length of the source."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.errors import DataError
from seqloom.metrics.lengths import bounds, by_length
from seqloom.metrics.overlap import exact_match


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=300),
    st.integers(1, 8),
    st.integers(1, 80),
)
def test_every_sentence_is_in_one_bucket_and_no_bucket_is_too_small(
    words: list[int], most: int, at_least: int
) -> None:
    found = bounds(words, most, at_least)
    sizes = [sum(shortest <= n <= longest for n in words) for shortest, longest in found]
    assert 1 <= len(found) <= most
    assert sum(sizes) == len(words)
    assert len(found) == 1 or min(sizes) >= at_least
    assert all(before[1] < after[0] for before, after in pairwise(found))
    assert (found[0][0], found[-1][1]) == (min(words), max(words))


def test_a_score_is_that_of_its_own_sentences() -> None:
    sources = ["one", "two words", "another one", "three words here", "four"]
    outputs = ["a", "b", "x", "x", "e"]
    buckets = by_length(exact_match, sources, outputs, [["a"], ["b"], ["c"], ["d"], ["e"]], 2, 2)
    found = [(b.shortest, b.longest, b.sentences, b.score.value) for b in buckets]
    assert found == [(1, 3, 5, 60.0)]  # one sentence is fewer than two
    one_each = by_length(exact_match, sources, outputs, [["a"], ["b"], ["c"], ["d"], ["e"]], 9, 1)
    assert [(b.shortest, b.sentences, b.score.value) for b in one_each] == [
        (1, 2, 100.0),
        (2, 2, 50.0),
        (3, 1, 0.0),
    ]


def test_as_many_sources_as_hypotheses_are_needed() -> None:
    with pytest.raises(DataError, match="3 sources and 2 hypotheses"):
        by_length(exact_match, ["a", "b", "c"], ["a", "b"], [["a"], ["b"]])
    with pytest.raises(DataError, match="there are no hypotheses"):
        by_length(exact_match, [], [], [])
