"""ROUGE-1, ROUGE-2 and ROUGE-L of summaries."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.metrics.rouge import OVERLAPS, rouge

words = st.lists(st.sampled_from("abc"), max_size=6)


def test_rouge_of_an_example_computed_by_hand() -> None:
    rouge_1, rouge_2, rouge_l = (
        rouge(kind, ["The cat sat."], [["A dog.", "the cat ran fast"]]) for kind in OVERLAPS
    )
    names = [score.name for score in (rouge_1, rouge_2, rouge_l)]
    assert names == ["ROUGE-1", "ROUGE-2", "ROUGE-L"]
    assert rouge_1.value == pytest.approx(100 * 2 * 2 / (3 + 4))
    assert rouge_2.value == pytest.approx(100 * 2 * 1 / (2 + 3))
    assert rouge_l.value == pytest.approx(100 * 2 * 2 / (3 + 4))


@given(words, words)
def test_rouge_l_uses_the_longest_common_subsequence(first: list[str], second: list[str]) -> None:
    longest = max(
        len(subsequence)
        for length in range(len(first) + 1)
        for subsequence in itertools.combinations(first, length)
        if is_subsequence(subsequence, second)
    )
    total = len(first) + len(second)
    score = rouge("rouge-l", [" ".join(first)], [[" ".join(second)]])
    assert score.value == pytest.approx(100 * 2 * longest / total if total else 0.0)


def is_subsequence(part: tuple[str, ...], sequence: list[str]) -> bool:
    remaining = iter(sequence)
    return all(word in remaining for word in part)
