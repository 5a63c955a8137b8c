"""Scores by source length."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.errors import DataError
from seqloom.metrics.by_length import bucket_bounds, by_length
from seqloom.metrics.error_rates import exact_match


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=300),
    st.integers(1, 8),
    st.integers(1, 80),
)
def test_every_sentence_is_in_one_bucket_and_no_bucket_is_too_small(
    lengths: list[int], max_buckets: int, min_sentences: int
) -> None:
    bounds = bucket_bounds(lengths, max_buckets, min_sentences)
    sizes = [
        sum(shortest <= length <= longest for length in lengths) for shortest, longest in bounds
    ]
    assert 1 <= len(bounds) <= max_buckets
    assert sum(sizes) == len(lengths)
    assert len(bounds) == 1 or min(sizes) >= min_sentences
    assert all(before[1] < after[0] for before, after in pairwise(bounds))
    assert (bounds[0][0], bounds[-1][1]) == (min(lengths), max(lengths))


def test_bucket_is_scored_on_its_own_sentences() -> None:
    sources = ["one", "two words", "another one", "three words here", "four"]
    outputs, references = ["a", "b", "x", "x", "e"], [["a"], ["b"], ["c"], ["d"], ["e"]]
    [bucket] = by_length(exact_match, sources, outputs, references, 2, 2)
    values = (bucket.shortest, bucket.longest, bucket.sentences, bucket.score.value)
    assert values == (1, 3, 5, 60.0)  # a bucket of one sentence would be too small
    buckets = by_length(exact_match, sources, outputs, references, 9, 1)
    assert [(bucket.shortest, bucket.sentences, bucket.score.value) for bucket in buckets] == [
        (1, 2, 100.0),
        (2, 2, 50.0),
        (3, 1, 0.0),
    ]


def test_number_of_sources_and_hypotheses_must_be_equal() -> None:
    with pytest.raises(DataError, match="3 sources and 2 hypotheses"):
        by_length(exact_match, ["a", "b", "c"], ["a", "b"], [["a"], ["b"]])
    with pytest.raises(DataError, match="there are no hypotheses"):
        by_length(exact_match, [], [], [])
