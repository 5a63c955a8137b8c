"""Alignments against those of people."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.core.errors import ConfigError, DataError
from seqloom.metrics.alignment import format_soft
from seqloom.metrics.alignment_error import GoldLinks, parse_gold, score_alignments
from seqloom.metrics.symmetrise import Symmetry, agreeing, known_symmetry, symmetrise

links = st.frozensets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


def test_sure_and_possible_links_are_told_apart() -> None:
    gold = parse_gold("0-0 2p1 3-4")
    assert gold.sure == {(0, 0), (3, 4)}
    assert gold.possible == {(0, 0), (2, 1), (3, 4)}


def test_what_is_no_gold_alignment_is_refused_and_all_of_it_is_named() -> None:
    with pytest.raises(DataError) as caught:
        parse_gold("0-0 1 2x3 -1-2")
    assert str(caught.value) == (
        "not a gold alignment: '1', '2x3', '-1-2'; write sure links as 0-0 and possible ones as "
        "0p0, source before target, words counted from 0"
    )


def test_a_case_by_hand() -> None:
    """Four links, of which two are sure and one more is possible; one sure link is missed."""
    gold = parse_gold("0-0 1-1 2-2 3p3")
    scores = score_alignments([[(0, 0), (1, 1), (3, 3), (5, 5)]], [gold])
    assert scores.precision == 3 / 4
    assert scores.recall == 2 / 3
    assert scores.error_rate == pytest.approx(1 - (2 + 3) / (4 + 3))


@given(links, links)
def test_scores_are_shares(
    found: frozenset[tuple[int, int]], sure: frozenset[tuple[int, int]]
) -> None:
    scores = score_alignments([found], [GoldLinks(sure, sure)])
    assert 0 <= scores.error_rate <= 1
    assert 0 <= scores.precision <= 1
    assert 0 <= scores.recall <= 1
    assert (scores.error_rate == 0) == (found == sure)


@given(links)
def test_where_all_is_sure_the_error_is_what_f1_leaves(found: frozenset[tuple[int, int]]) -> None:
    gold = parse_gold("0-0 1-1 2-3 4-4")
    scores = score_alignments([found], [gold])
    total = scores.precision + scores.recall
    balanced = 2 * scores.precision * scores.recall / total if total else 0.0
    assert scores.error_rate == pytest.approx(1 - balanced)


def test_links_of_all_pairs_are_counted_before_anything_is_divided() -> None:
    """A long sentence weighs more than a short one."""
    gold = [parse_gold("0-0 1-1 2-2"), parse_gold("0-0")]
    scores = score_alignments([[(0, 0), (1, 1), (2, 2)], [(0, 1)]], gold)
    assert scores.precision == 3 / 4
    assert (scores.sentences, scores.links) == (2, 4)


@given(links, links)
def test_from_both_sides_the_ways_to_join_stand_in_this_order(
    one: frozenset[tuple[int, int]], other: frozenset[tuple[int, int]]
) -> None:
    names: list[Symmetry] = ["intersection", "grow-diag", "grow-diag-final", "union"]
    joined = [set(symmetrise(one, other, how)) for how in names]
    assert joined[0] == one & other
    assert joined[3] == one | other
    for smaller, larger in pairwise(joined):
        assert smaller <= larger


@given(links)
def test_what_both_sides_say_is_what_they_say(one: frozenset[tuple[int, int]]) -> None:
    for how in ("intersection", "grow-diag", "grow-diag-final", "union"):
        assert set(symmetrise(one, one, known_symmetry(how))) == one


def test_growing_takes_neighbours_that_reach_a_new_word_and_no_others() -> None:
    forward, backward = [(0, 0), (1, 1), (4, 4)], [(0, 0), (0, 1), (1, 0)]
    assert symmetrise(forward, backward, "grow-diag") == [(0, 0), (1, 0), (0, 1)]
    assert symmetrise(forward, backward, "grow-diag-final") == [(0, 0), (1, 0), (0, 1), (4, 4)]


def test_a_way_to_join_that_does_not_exist_is_told() -> None:
    with pytest.raises(ConfigError, match="no symmetrisation 'and'; there are intersection, union"):
        known_symmetry("and")


def test_a_soft_alignment_has_a_weight_for_every_link_that_is_not_nothing() -> None:
    written = format_soft([[0.93, 0.067], [0.004, 0.996]], [0, 1], [0, 1])
    assert written == "0-0:0.93 1-0:0.07 1-1:1.00"


def test_both_sides_have_a_say_before_either_chooses() -> None:
    """Alone the first target word takes source 1; the other side knows better."""
    forward, backward = [[0.4, 0.6], [0.1, 0.9]], [[0.9, 0.1], [0.2, 0.8]]
    one, other = agreeing(forward, backward)
    assert one == [(0, 0), (1, 1)]
    assert other == [(0, 0), (1, 1)]
    assert agreeing([], []) == ([], [])
