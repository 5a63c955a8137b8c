"""Error rates of pronunciations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.errors import DataError
from seqloom.metrics.edits import edit_distance, phoneme_error_rate, word_error_rate

words = st.text("abc", max_size=7)
pronunciations = st.lists(st.sampled_from(["K", "AE", "T", "AH"]), min_size=1, max_size=5)


def test_the_textbook_example() -> None:
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance("", "abc") == 3


@given(words, words, words)
def test_it_is_a_distance(one: str, other: str, third: str) -> None:
    here = edit_distance(one, other)
    assert (here == 0) == (one == other)
    assert here == edit_distance(other, one)
    assert here <= edit_distance(one, third) + edit_distance(third, other)


@given(words, words, words)
def test_what_both_begin_or_end_with_costs_nothing(one: str, other: str, both: str) -> None:
    assert edit_distance(both + one, both + other) == edit_distance(one, other)
    assert edit_distance(one + both, other + both) == edit_distance(one, other)


@given(words, words)
def test_it_lies_between_the_difference_in_length_and_the_longer_length(
    one: str, other: str
) -> None:
    assert abs(len(one) - len(other)) <= edit_distance(one, other) <= max(len(one), len(other))


@given(st.lists(pronunciations, min_size=1, max_size=3), pronunciations)
def test_any_listed_pronunciation_is_right(several: list[list[str]], found: list[str]) -> None:
    references = [" ".join(one) for one in several]
    right = " ".join(found) in references
    assert word_error_rate([" ".join(found)], [references]).value == (0 if right else 100)
    assert (phoneme_error_rate([" ".join(found)], [references]).value == 0) == right


def test_the_nearest_pronunciation_counts_with_its_own_length() -> None:
    score = phoneme_error_rate(["R EY D", "K AE T"], [["R IY D Z AH", "R EH D"], ["K AE T S"]])
    assert score.value == pytest.approx(100 * (1 + 1) / (3 + 4))


def test_one_edit_weighs_more_in_a_short_word_but_words_are_summed_before_they_are_divided() -> (
    None
):
    score = phoneme_error_rate(["A", "B C D"], [["X"], ["B C D"]])
    assert score.value == 25


def test_lower_is_better_and_the_names_are_those_of_recipes() -> None:
    for metric in (phoneme_error_rate, word_error_rate):
        score = metric(["K"], [["K"]])
        assert not score.higher_is_better
        assert score.key == metric.__name__.replace("_", "-")


def test_where_there_is_no_phone_every_one_put_out_is_wrong() -> None:
    assert phoneme_error_rate([""], [[""]]).value == 0
    assert phoneme_error_rate(["K AE"], [[""]]).value == 2


@pytest.mark.parametrize("metric", [phoneme_error_rate, word_error_rate])
def test_nothing_cannot_be_scored(metric: object) -> None:
    assert callable(metric)
    with pytest.raises(DataError, match="there are no hypotheses"):
        metric([], [])
