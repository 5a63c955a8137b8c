"""Exact match, token accuracy, edit distance and the error rates of pronunciations."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.core.errors import DataError
from seqloom.metrics.bleu import ter
from seqloom.metrics.error_rates import (
    edit_distance,
    exact_match,
    phoneme_error_rate,
    token_accuracy,
    tokenised_match,
    word_error_rate,
)
from seqloom.metrics.score import Metric

words = st.text("abc", max_size=7)
lines = st.lists(st.text(alphabet="ab ", max_size=8), min_size=1, max_size=5)
pronunciations = st.lists(st.sampled_from(["K", "AE", "T", "AH"]), min_size=1, max_size=5)


def test_exact_match_compares_characters_with_any_reference() -> None:
    references = [["a", "b"], ["c"], ["d "], ["D"]]
    assert exact_match(["b", "c", "d", "d"], references).value == 50


def test_tokenised_match_ignores_white_space_between_tokens() -> None:
    outputs = ["f ( x )", "f (x)", "g"]
    references = [["  f  ( x ) "], ["f ( x )"], ["h", "g "]]
    assert tokenised_match(outputs, references).value == pytest.approx(200 / 3)


@pytest.mark.parametrize(
    ("output", "references", "percent"),
    [
        ("a b c", ["a b c"], 100),
        ("a b", ["a b c d"], 50),
        ("a b c d", ["a b"], 50),
        ("x a b c", ["a b c"], 0),
        ("a x c", ["a b c", "a x d", "q"], 200 / 3),
        ("a x c", ["q", "a x c d"], 75),
        ("", ["a"], 0),
        ("a", [""], 0),
        ("", [""], 100),
        ("", ["a", ""], 100),
    ],
)
def test_token_accuracy_compares_tokens_by_position(
    output: str, references: list[str], percent: float
) -> None:
    assert token_accuracy([output], [references]).value == pytest.approx(percent)


@settings(deadline=None)
@given(lines, st.data())
def test_exact_match_and_token_accuracy_are_percentages(
    outputs: list[str], data: st.DataObject
) -> None:
    references = [data.draw(lines) for _ in outputs]
    for metric in [exact_match, token_accuracy]:
        assert 0 <= metric(outputs, references).value <= 100
    accurate = sum(
        token_accuracy([output], [texts]).value == 100
        for output, texts in zip(outputs, references, strict=True)
    )
    assert exact_match(outputs, references).value <= 100 * accurate / len(outputs) + 1e-9


def test_edit_distance_of_the_textbook_example() -> None:
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance("", "abc") == 3


@given(words, words, words)
def test_edit_distance_is_a_metric(first: str, second: str, third: str) -> None:
    distance = edit_distance(first, second)
    assert (distance == 0) == (first == second)
    assert distance == edit_distance(second, first)
    assert distance <= edit_distance(first, third) + edit_distance(third, second)


@given(words, words, words)
def test_common_prefix_or_suffix_does_not_change_the_edit_distance(
    first: str, second: str, common: str
) -> None:
    assert edit_distance(common + first, common + second) == edit_distance(first, second)
    assert edit_distance(first + common, second + common) == edit_distance(first, second)


@given(words, words)
def test_edit_distance_is_between_the_length_difference_and_the_longer_length(
    first: str, second: str
) -> None:
    distance = edit_distance(first, second)
    assert abs(len(first) - len(second)) <= distance <= max(len(first), len(second))


@given(st.lists(pronunciations, min_size=1, max_size=3), pronunciations)
def test_any_listed_pronunciation_is_correct(listed: list[list[str]], output: list[str]) -> None:
    references = [" ".join(pronunciation) for pronunciation in listed]
    is_correct = " ".join(output) in references
    assert word_error_rate([" ".join(output)], [references]).value == (0 if is_correct else 100)
    assert (phoneme_error_rate([" ".join(output)], [references]).value == 0) == is_correct


def test_nearest_pronunciation_counts_with_its_own_length() -> None:
    score = phoneme_error_rate(["R EY D", "K AE T"], [["R IY D Z AH", "R EH D"], ["K AE T S"]])
    assert score.value == pytest.approx(100 * (1 + 1) / (3 + 4))


def test_edits_and_phonemes_are_summed_over_all_words_before_dividing() -> None:
    score = phoneme_error_rate(["A", "B C D"], [["X"], ["B C D"]])
    assert score.value == 25


def test_error_rates_have_the_names_of_recipes_and_lower_is_better() -> None:
    for metric in (phoneme_error_rate, word_error_rate):
        score = metric(["K"], [["K"]])
        assert not score.higher_is_better
        assert score.key == metric.__name__.replace("_", "-")


@pytest.mark.parametrize("metric", [phoneme_error_rate, word_error_rate, ter])
def test_error_rates_are_0_or_100_if_all_references_are_empty(metric: Metric) -> None:
    assert metric([""], [[""]]).value == 0
    assert metric(["K AE"], [[""]]).value == 100
    assert metric(["K AE", "K AE T"], [[""], ["", ""]]).value == 100


def test_phonemes_of_an_empty_reference_are_edits_if_other_references_have_phonemes() -> None:
    assert phoneme_error_rate(["K AE", "K AE T S"], [[""], ["K AE T S"]]).value == 50


@pytest.mark.parametrize("metric", [phoneme_error_rate, word_error_rate])
def test_error_rates_need_hypotheses(metric: Metric) -> None:
    with pytest.raises(DataError, match="there are no hypotheses"):
        metric([], [])
