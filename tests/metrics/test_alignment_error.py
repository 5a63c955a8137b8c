"""Scores of alignments against gold alignments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.errors import DataError
from seqloom.metrics.alignment import Link
from seqloom.metrics.alignment_error import GoldLinks, parse_gold, score_alignments

link_sets = st.frozensets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


def test_gold_alignments_distinguish_sure_and_possible_links() -> None:
    gold = parse_gold("0-0 2p1 3-4")
    assert gold.sure == {(0, 0), (3, 4)}
    assert gold.possible == {(0, 0), (2, 1), (3, 4)}


def test_every_invalid_entry_of_a_gold_alignment_is_reported() -> None:
    with pytest.raises(DataError) as caught:
        parse_gold("0-0 1 2x3 -1-2")
    assert str(caught.value) == (
        "not a gold alignment: '1', '2x3', '-1-2'; write sure links as 0-0 and possible links as "
        "0p0, source before target, with words counted from 0"
    )


def test_scores_of_an_example_computed_by_hand() -> None:
    """Four links, of which two are sure and one more is possible; one sure link is missed."""
    gold = parse_gold("0-0 1-1 2-2 3p3")
    scores = score_alignments([[(0, 0), (1, 1), (3, 3), (5, 5)]], [gold])
    assert scores.precision == 3 / 4
    assert scores.recall == 2 / 3
    assert scores.error_rate == pytest.approx(1 - (2 + 3) / (4 + 3))


@given(link_sets, link_sets)
def test_scores_are_between_zero_and_one(predicted: frozenset[Link], sure: frozenset[Link]) -> None:
    scores = score_alignments([predicted], [GoldLinks(sure, sure)])
    assert 0 <= scores.error_rate <= 1
    assert 0 <= scores.precision <= 1
    assert 0 <= scores.recall <= 1
    assert (scores.error_rate == 0) == (predicted == sure)


@given(link_sets)
def test_error_rate_is_one_minus_f1_if_all_links_are_sure(predicted: frozenset[Link]) -> None:
    gold = parse_gold("0-0 1-1 2-3 4-4")
    scores = score_alignments([predicted], [gold])
    total = scores.precision + scores.recall
    f1 = 2 * scores.precision * scores.recall / total if total else 0.0
    assert scores.error_rate == pytest.approx(1 - f1)


def test_links_are_counted_over_all_sentence_pairs_before_dividing() -> None:
    """A long sentence has more weight than a short one."""
    gold = [parse_gold("0-0 1-1 2-2"), parse_gold("0-0")]
    scores = score_alignments([[(0, 0), (1, 1), (2, 2)], [(0, 1)]], gold)
    assert scores.precision == 3 / 4
    assert (scores.sentences, scores.links) == (2, 4)
