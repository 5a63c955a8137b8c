"""Positions of the candidates of a search in its drawing."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from seqloom.decoding.trace import Fate, Reason, TracedCandidate
from seqloom.viz.search_tree import (
    candidates_to_draw,
    format_probability,
    spread_rows,
)

rows = st.lists(st.integers(-20, 20).map(float), max_size=12)


@given(rows)
def test_labels_do_not_overlap(desired: list[float]) -> None:
    placed = spread_rows(sorted(desired))
    assert all(below - above >= 1 - 1e-9 for above, below in pairwise(placed))


@given(rows)
def test_labels_that_do_not_overlap_stay_in_place(desired: list[float]) -> None:
    distinct = sorted(set(desired))
    assert spread_rows(distinct) == distinct


@given(rows)
def test_overlapping_labels_move_equally_up_and_down(desired: list[float]) -> None:
    placed = spread_rows(sorted(desired))
    assert abs(sum(placed) - sum(desired)) < 1e-6


def test_all_kept_and_the_best_dropped_candidates_are_drawn() -> None:
    def candidate(total: float, fate: Fate) -> TracedCandidate:
        reason = Reason.OUTSCORED if fate is Fate.DROPPED else None
        return TracedCandidate(5, -1, total, total, total, fate, reason)

    step = [
        candidate(-3.0, Fate.DROPPED),
        candidate(-5.0, Fate.KEPT),
        candidate(-1.0, Fate.DROPPED),
    ]
    assert sorted(candidates_to_draw(step, 1)) == [1, 2]
    assert sorted(candidates_to_draw(step, 0)) == [1]
    assert sorted(candidates_to_draw(step, 9)) == [0, 1, 2]


def test_probabilities_are_short_and_never_zero() -> None:
    texts = [format_probability(value) for value in (0.0, -0.1, -3.0, -20.0)]
    assert texts == ["1.0", ".90", ".05", "<.01"]
