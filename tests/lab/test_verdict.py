"""The rule that judges every claim."""

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
        ([0.1, 0.1, 9.0], "undecided"),  # same sign, but the mean is within two standard errors
        ([0.0, 0.0, 0.0], "undecided"),
        ([5.0, 5.0], "undecided"),  # two seeds are too few
    ],
)
def test_an_effect_needs_every_seed_and_twice_its_standard_error(
    numbers: list[float], state: State
) -> None:
    assert Effect("it grows by", numbers).state == state


@given(values)
def test_numbers_that_confirm_a_statement_refute_its_opposite(numbers: list[float]) -> None:
    opposite: dict[State, State] = {
        "confirmed": "refuted",
        "refuted": "confirmed",
        "undecided": "undecided",
    }
    negated = Effect("it falls by", [-value for value in numbers])
    assert negated.state == opposite[Effect("it grows by", numbers).state]
    assert Effect("it is", numbers, below=0.0).state == negated.state


@given(values, st.floats(-50, 50))
def test_a_bound_is_equivalent_to_shifted_numbers(numbers: list[float], bound: float) -> None:
    shifted = Effect("it is", [value - bound for value in numbers])
    assert Effect("it is", numbers, above=bound).state == shifted.state


def test_a_claim_needs_all_statements_and_one_refutes_it() -> None:
    yes, no, unclear = (
        Effect(f"{name} is", numbers)
        for name, numbers in (("a", [1.0] * 3), ("b", [-1.0] * 3), ("c", [1.0, -1.0, 1.0]))
    )
    assert conclude(yes, yes).state == "confirmed"
    assert conclude(yes, unclear).state == "undecided"
    assert conclude(yes, unclear, no).state == "refuted"


def test_the_reason_has_the_numbers_and_the_requirement() -> None:
    effect = Effect("attention is ahead by", [0.2, 0.3, 0.25], above=0.1, format_spec=".0%")
    expected = "yes: attention is ahead by 25% (20% to 30%), required: more than 10%"
    assert conclude(effect).reason == expected
