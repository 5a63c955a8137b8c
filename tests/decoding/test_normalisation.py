"""Length normalisation: one formula for floats and arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.decoding.hypothesis import LengthNormalisation


@given(
    st.lists(st.tuples(st.floats(-1e3, 0), st.integers(1, 300)), min_size=1),
    st.sampled_from([0.0, 0.5, 0.6, 1.0, 1.4, 2.0]),
)
def test_arrays_are_normalised_like_floats(
    values: list[tuple[float, int]], length_penalty: float
) -> None:
    totals, lengths = zip(*values, strict=True)
    scores = normalise_by_length(np.array(totals), np.array(lengths), length_penalty)
    expected = [normalise_by_length(total, length, length_penalty) for total, length in values]
    assert scores.tolist() == pytest.approx(expected)


def test_length_penalty_of_one_gives_the_mean_log_probability() -> None:
    assert normalise_by_length(-4.5, 6, 1.0) == -0.75
    assert normalise_by_length(-4.5, 6, 0.0) == -4.5
