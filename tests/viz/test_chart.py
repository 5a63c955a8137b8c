"""SVG charts: ticks, axes, lines and bars."""

import math
import xml.etree.ElementTree as xml
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.viz.chart import (
    BarChart,
    LineChart,
    Series,
    create_axis,
    format_tick,
    power_of_ten_ticks,
    render_svg,
    round_ticks,
)

numbers = st.floats(-1e6, 1e6).map(lambda value: round(value, 6))
SVG = "{http://www.w3.org/2000/svg}"


@given(numbers, st.floats(1e-3, 1e6))
def test_round_ticks_are_evenly_spaced_and_cover_the_range(low: float, span: float) -> None:
    ticks = round_ticks(low, low + span)
    steps = [after - before for before, after in pairwise(ticks)]
    assert ticks[0] <= low + 1e-6 * span
    assert low + span <= ticks[-1] + 1e-6 * span
    assert 2 <= len(ticks) <= 8
    assert all(math.isclose(step, steps[0], rel_tol=1e-6, abs_tol=1e-9) for step in steps)


@given(st.floats(1e-12, 1e12), st.floats(1, 1e12))
def test_power_of_ten_ticks_cover_the_range(low: float, factor: float) -> None:
    ticks = power_of_ten_ticks(low, low * factor)
    assert ticks[0] <= low * (1 + 1e-8)
    assert low * factor <= ticks[-1] * (1 + 1e-8)
    assert 2 <= len(ticks) <= 8


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20), st.booleans())
def test_axis_preserves_order_and_stays_in_its_range(values: list[float], zero: bool) -> None:
    axis = create_axis(values, 0, 100, logarithmic=False, zero=zero)
    positions = [axis.position(value) for value in sorted(values)]
    assert positions == sorted(positions)
    assert positions[0] >= -1e-6
    assert positions[-1] <= 100 + 1e-6


def test_logarithmic_axis_clamps_zero_to_its_start() -> None:
    axis = create_axis([0.0, 0.01, 10.0], 0, 100, logarithmic=True)
    assert axis.position(0.0) == 0
    assert axis.position(10.0) == 100


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.25, "0.25"), (1500, "1,500"), (1e-5, "10⁻⁵"), (3e7, "3·10⁷"), (-1e6, "-10⁶")],
)
def test_ticks_are_formatted_short(value: float, text: str) -> None:
    assert format_tick(value) == text


def test_line_follows_the_mean_and_its_band_covers_every_seed() -> None:
    chart = LineChart("x", "y", [Series("a", (1, 2), ((0.0, 0.2), (0.8, 1.0)))])
    tree = xml.fromstring(render_svg(chart))
    [mean] = [
        line.attrib["points"]
        for line in tree.iter(f"{SVG}polyline")
        if line.get("stroke-width") == "2.2"
    ]
    [band] = [polygon.attrib["points"] for polygon in tree.iter(f"{SVG}polygon")]
    (_, first), (_, last) = (map(float, point.split(",")) for point in mean.split())
    assert first > last  # y grows downwards in SVG
    heights = [float(point.split(",")[1]) for point in band.split()]
    assert min(heights) < last
    assert max(heights) > first


def test_bars_are_as_long_as_their_means_with_a_dot_for_each_seed() -> None:
    tree = xml.fromstring(render_svg(BarChart("y", ("a", "b"), ((1.0, 3.0), (4.0, 4.0)))))
    short_bar, long_bar = (
        float(bar.attrib["width"]) for bar in tree.iter(f"{SVG}rect") if bar.get("class") == "fill0"
    )
    assert long_bar == pytest.approx(2 * short_bar, abs=0.1)
    assert len(list(tree.iter(f"{SVG}circle"))) == 4


def test_names_are_escaped() -> None:
    chart = BarChart("<b>", ("a & b",), ((1.0,),))
    texts = [text.text for text in xml.fromstring(render_svg(chart)).iter(f"{SVG}text")]
    assert "<b>" in texts
    assert "a & b" in texts


def test_line_has_a_gap_at_zero_on_a_logarithmic_axis() -> None:
    series = Series("a", (0, 1, 2, 3), ((1.0,), (0.0,), (2.0,), (3.0,)))
    svg = render_svg(LineChart("x", "y", [series], logarithmic_y=True, labels="abcd"))
    lines = [
        line
        for line in xml.fromstring(svg).iter(f"{SVG}polyline")
        if line.get("stroke-width") == "2.2"
    ]
    assert [len(line.attrib["points"].split()) for line in lines] == [1, 2]


def test_charts_side_by_side_do_not_overlap() -> None:
    chart = LineChart("x", "y", [Series("a", (1, 2), ((0.0,), (1.0,)))], title="title")
    one, two = (xml.fromstring(render_svg(*[chart] * count)) for count in (1, 2))
    assert float(two.attrib["width"]) > 1.9 * float(one.attrib["width"])
    assert two.attrib["viewBox"].split()[3] == one.attrib["viewBox"].split()[3]


def test_bars_of_a_group_have_the_same_colour() -> None:
    chart = BarChart("y", "abc", [[1.0], [10.0], [0.0]], scale="logarithmic", groups="uvu")
    bars = [
        bar
        for bar in xml.fromstring(render_svg(chart)).iter(f"{SVG}rect")
        if "fill" in bar.get("class", "")
    ]
    assert [bar.get("class") for bar in bars] == ["fill0", "fill1", "fill0"]
    assert float(bars[2].attrib["width"]) == 0


def test_a_line_chart_without_points_has_its_axes_and_names() -> None:
    chart = LineChart("distance", "log p", [Series("own output", [], [])])
    assert "own output" in render_svg(chart)
