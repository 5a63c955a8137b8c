"""The one rule by which every claim is judged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.lab.verdict import Effect, State, conclude

values = st.lists(st.floats(-100, 100), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("numbers", "state"),
    [
        ([1.0, 1.1, 0.9], "confirmed"),
        ([-1.0, -1.1, -0.9], "refuted"),
        ([1.0, 1.1, -0.1], "undecided"),  # one seed disagrees
        ([0.1, 0.1, 9.0], "undecided"),  # of one sign, but the mean is within its error
        ([0.0, 0.0, 0.0], "undecided"),
        ([5.0, 5.0], "undecided"),  # two seeds are too few, however alike
    ],
)
def test_an_effect_needs_every_seed_and_twice_its_standard_error(
    numbers: list[float], state: State
) -> None:
    assert Effect("it grows by", numbers).state == state


@given(values)
def test_what_confirms_a_claim_refutes_its_opposite(numbers: list[float]) -> None:
    opposite: dict[State, State] = {
        "confirmed": "refuted",
        "refuted": "confirmed",
        "undecided": "undecided",
    }
    turned = Effect("it falls by", [-value for value in numbers])
    assert turned.state == opposite[Effect("it grows by", numbers).state]
    assert Effect("it is", numbers, below=0.0).state == turned.state


@given(values, st.floats(-50, 50))
def test_a_bound_is_the_zero_of_what_is_measured_against_it(
    numbers: list[float], bound: float
) -> None:
    shifted = Effect("it is", [value - bound for value in numbers])
    assert Effect("it is", numbers, above=bound).state == shifted.state


def test_a_claim_holds_if_all_of_it_does_and_falls_with_one_part() -> None:
    yes, no, unclear = (
        Effect(f"{name} is", numbers)
        for name, numbers in (("a", [1.0] * 3), ("b", [-1.0] * 3), ("c", [1.0, -1.0, 1.0]))
    )
    assert conclude(yes, yes).state == "confirmed"
    assert conclude(yes, unclear).state == "undecided"
    assert conclude(yes, unclear, no).state == "refuted"


def test_the_reason_says_the_numbers_and_what_was_wanted() -> None:
    effect = Effect("attention is ahead by", [0.2, 0.3, 0.25], above=0.1, form=".0%")
    expected = "yes: attention is ahead by 25% (20% to 30%), more than 10% wanted"
    assert conclude(effect).reason == expected
