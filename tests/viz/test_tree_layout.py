"""Where the candidates of a search stand in its picture."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from seqloom.decoding.record import Candidate, Fate, Reason
from seqloom.viz.tree_layout import drawn, share, spread

rows = st.lists(st.integers(-20, 20).map(float), max_size=12)


@given(rows)
def test_no_two_labels_stand_on_each_other(wanted: list[float]) -> None:
    placed = spread(sorted(wanted))
    assert all(below - above >= 1 - 1e-9 for above, below in pairwise(placed))


@given(rows)
def test_labels_stay_where_there_is_room(wanted: list[float]) -> None:
    apart = sorted(set(wanted))
    assert spread(apart) == apart


@given(rows)
def test_who_must_move_moves_to_both_sides_alike(wanted: list[float]) -> None:
    """The sum of all moves is nothing: what goes down on one side goes up on the other."""
    placed = spread(sorted(wanted))
    assert abs(sum(placed) - sum(wanted)) < 1e-6


def test_all_that_is_saved_is_drawn_and_of_what_is_dropped_the_best() -> None:
    def one(total: float, fate: Fate) -> Candidate:
        reason = Reason.OUTSCORED if fate is Fate.DROPPED else None
        return Candidate(5, -1, total, total, total, fate, reason)

    step = [one(-3.0, Fate.DROPPED), one(-5.0, Fate.KEPT), one(-1.0, Fate.DROPPED)]
    assert sorted(drawn(step, 1)) == [1, 2]
    assert sorted(drawn(step, 0)) == [1]
    assert sorted(drawn(step, 9)) == [0, 1, 2]


def test_a_probability_takes_few_characters_and_never_says_zero() -> None:
    assert [share(value) for value in (0.0, -0.1, -3.0, -20.0)] == ["1.0", ".90", ".05", "<.01"]
