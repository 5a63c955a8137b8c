"""Numbers and bars in terminal tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.viz.terminal_format import draw_bar, format_column, format_number


@given(st.floats(0, 1), st.integers(1, 40))
def test_bar_length_is_proportional_to_its_fraction(fraction: float, cells: int) -> None:
    assert len(draw_bar(fraction, cells, ascii_only=True)) == round(fraction * cells)
    eighths = sum("▏▎▍▌▋▊▉█".index(mark) + 1 for mark in draw_bar(fraction, cells))
    assert abs(eighths - fraction * cells * 8) <= 1


@given(st.floats(-1e300, 1e300))
def test_numbers_keep_three_decimals_or_their_exponent(value: float) -> None:
    assert float(format_number(value)) == pytest.approx(
        value, rel=0.06, abs=1e-3 if abs(value) >= 0.0005 else 0
    )


@pytest.mark.parametrize("text", ["nan", "inf", "-inf"])
def test_numbers_that_are_not_finite_are_named(text: str) -> None:
    assert format_number(float(text)) == text
    assert format_column([1.5, float(text)]) == ["1.500", text]
