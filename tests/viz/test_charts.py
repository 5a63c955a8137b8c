"""Charts: what is drawn lies where its numbers say."""

import math
import xml.etree.ElementTree as xml
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.viz.chart import Bars, Lines, Series, draw
from seqloom.viz.ticks import axis, decades, round_ticks, short

numbers = st.floats(-1e6, 1e6).map(lambda value: round(value, 6))
SVG = "{http://www.w3.org/2000/svg}"


@given(numbers, st.floats(1e-3, 1e6))
def test_ticks_are_round_evenly_spaced_and_hold_everything(low: float, span: float) -> None:
    ticks = round_ticks(low, low + span)
    steps = [after - before for before, after in pairwise(ticks)]
    assert ticks[0] <= low + 1e-6 * span
    assert low + span <= ticks[-1] + 1e-6 * span
    assert 2 <= len(ticks) <= 8
    assert all(math.isclose(step, steps[0], rel_tol=1e-6, abs_tol=1e-9) for step in steps)


@given(st.floats(1e-12, 1e12), st.floats(1, 1e12))
def test_decades_are_powers_of_ten_around_everything(low: float, factor: float) -> None:
    ticks = decades(low, low * factor)
    assert ticks[0] <= low * (1 + 1e-8)
    assert low * factor <= ticks[-1] * (1 + 1e-8)
    assert 2 <= len(ticks) <= 8


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20), st.booleans())
def test_an_axis_keeps_the_order_and_the_paper(values: list[float], zero: bool) -> None:
    whole = axis(values, 0, 100, logarithmic=False, zero=zero)
    places = [whole.place(value) for value in sorted(values)]
    assert places == sorted(places)
    assert places[0] >= -1e-6
    assert places[-1] <= 100 + 1e-6


def test_what_is_not_above_zero_lies_on_the_floor_of_a_logarithmic_axis() -> None:
    whole = axis([0.0, 0.01, 10.0], 0, 100, logarithmic=True)
    assert whole.place(0.0) == 0
    assert whole.place(10.0) == 100


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (0.25, "0.25"), (1500, "1,500"), (1e-5, "10⁻⁵"), (3e7, "3·10⁷"), (-1e6, "-10⁶")],
)
def test_ticks_are_written_short(value: float, shown: str) -> None:
    assert short(value) == shown


def test_a_line_rises_with_its_numbers_and_its_band_holds_every_seed() -> None:
    chart = Lines("x", "y", [Series("a", (1, 2), ((0.0, 0.2), (0.8, 1.0)))])
    tree = xml.fromstring(draw(chart))
    [mean] = [one.attrib["points"] for one in tree.iter(f"{SVG}polyline")]
    [band] = [one.attrib["points"] for one in tree.iter(f"{SVG}polygon")]
    (_, first), (_, last) = (map(float, point.split(",")) for point in mean.split())
    assert first > last  # paper counts downwards
    heights = [float(point.split(",")[1]) for point in band.split()]
    assert min(heights) < last
    assert max(heights) > first


def test_bars_are_as_long_as_their_means_with_a_dot_for_each_seed() -> None:
    tree = xml.fromstring(draw(Bars("y", ("a", "b"), ((1.0, 3.0), (4.0, 4.0)))))
    short_bar, long_bar = (float(one.attrib["width"]) for one in tree.iter(f"{SVG}rect"))
    assert long_bar == pytest.approx(2 * short_bar, abs=0.1)
    assert len(list(tree.iter(f"{SVG}circle"))) == 4


def test_names_are_text_and_not_markup() -> None:
    chart = Bars("<b>", ("a & b",), ((1.0,),))
    words = [one.text for one in xml.fromstring(draw(chart)).iter(f"{SVG}text")]
    assert "<b>" in words
    assert "a & b" in words
