"""SARI and ROUGE: what is right about a simpler sentence and about a summary."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.metrics.overlap import tokenised_match
from seqloom.metrics.rouge import OVERLAPS, rouge
from seqloom.metrics.sari import sari

words = st.lists(st.sampled_from("abc"), max_size=6)


def test_sari_counts_what_was_added_kept_and_deleted() -> None:
    # Of the words: c was added where d was wanted, a kept and b deleted as wanted. Of the pairs:
    # "a c" was added where "a d" was wanted, none kept, "a b" deleted as wanted. No longer ones.
    score = sari(["a b"], ["a c"], [["a d"]])
    assert score.value == pytest.approx(100 * (0 + 1 + 1 + 0 + 0 + 1) / 12)
    assert score.signature == "corpus|del:f1|n:1-4|case:lc|tok:13a"


def test_to_change_nothing_is_worth_little_and_to_change_as_wanted_all() -> None:
    source = "He subsequently went back to the old house on the hill."
    wanted = "Later he went back to the old house on a hill."
    same, right = (sari([source], [output], [[wanted]]).value for output in (source, wanted))
    assert same < 40
    assert right == pytest.approx(100)


def test_what_more_references_keep_counts_more() -> None:
    source, references = "a b", [["a", "a", "b"]]
    often, seldom = (sari([source], [output], references).value for output in ("a", "b"))
    assert often > seldom


def test_rouge_by_hand() -> None:
    one, two, longest = (
        rouge(kind, ["The cat sat."], [["A dog.", "the cat ran fast"]]) for kind in OVERLAPS
    )
    assert [score.name for score in (one, two, longest)] == ["ROUGE-1", "ROUGE-2", "ROUGE-L"]
    assert one.value == pytest.approx(100 * 2 * 2 / (3 + 4))
    assert two.value == pytest.approx(100 * 2 * 1 / (2 + 3))
    assert longest.value == pytest.approx(100 * 2 * 2 / (3 + 4))


@given(words, words)
def test_rouge_l_is_that_of_the_longest_common_subsequence(
    one: list[str], other: list[str]
) -> None:
    shared = max(
        len(some)
        for length in range(len(one) + 1)
        for some in itertools.combinations(one, length)
        if _within(some, other)
    )
    total = len(one) + len(other)
    found = rouge("rouge-l", [" ".join(one)], [[" ".join(other)]]).value
    assert found == pytest.approx(100 * 2 * shared / total if total else 0.0)


def _within(some: tuple[str, ...], whole: list[str]) -> bool:
    rest = iter(whole)
    return all(word in rest for word in some)


def test_tokens_match_whatever_the_white_space_between_them() -> None:
    outputs = ["f ( x )", "f (x)", "g"]
    references = [["  f  ( x ) "], ["f ( x )"], ["h", "g "]]
    assert tokenised_match(outputs, references).value == pytest.approx(200 / 3)
