"""Length normalisation: what counts as length, and one formula for floats and arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.decoding.hypothesis import PER_TOKEN, LengthNormalisation

normalisations = st.builds(
    LengthNormalisation, st.sampled_from([0.0, 0.5, 0.6, 1.0, 1.4, 2.0]), st.booleans()
)


@given(
    st.lists(st.tuples(st.floats(-1e3, 0), st.integers(1, 300), st.booleans()), min_size=1),
    normalisations,
)
def test_arrays_are_normalised_like_floats(
    values: list[tuple[float, int, bool]], normalisation: LengthNormalisation
) -> None:
    scores = normalisation.score(*map(np.array, zip(*values, strict=True)))
    assert scores.tolist() == pytest.approx([normalisation.score(*value) for value in values])


def test_end_does_not_count_by_default_and_counts_on_request() -> None:
    """The numbers of the lecture: -4.5 for 6 words, -3.2 for 4 words."""
    assert PER_TOKEN.score(-4.5, 7, True) == -0.75
    assert PER_TOKEN.score(-3.2, 5, True) == -0.8
    with_end = LengthNormalisation(counts_end=True)
    assert with_end.score(-4.5, 7, True) == pytest.approx(-0.643, abs=5e-4)
    assert with_end.score(-3.2, 5, True) == -0.64


@given(st.floats(-1e3, 0), st.integers(1, 300))
def test_an_unfinished_output_has_no_end_to_count(log_probability: float, steps: int) -> None:
    scores = {
        LengthNormalisation(0.6, counts_end).score(log_probability, steps, False)
        for counts_end in (False, True)
    }
    assert scores == {log_probability / steps**0.6}


@given(st.floats(-1e3, 0), normalisations)
def test_the_empty_output_has_length_one(
    log_probability: float, normalisation: LengthNormalisation
) -> None:
    assert normalisation.score(log_probability, 1, True) == log_probability


@given(st.floats(-1e3, 0), st.integers(1, 300), st.booleans())
def test_a_length_penalty_of_zero_gives_the_log_probability(
    log_probability: float, steps: int, counts_end: bool
) -> None:
    score = LengthNormalisation(0.0, counts_end).score(log_probability, steps, True)
    assert score == log_probability
