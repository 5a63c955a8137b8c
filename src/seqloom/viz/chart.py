"""Draw line and bar charts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, assert_never

from seqloom.viz.drawing import SERIES_COUNT, Drawing, Svg, text_width, widest

_WIDTH = 680
_HEIGHT = 270
_LABEL_WIDTH = 40
"""Width of a place on an x axis with labels, in pixels."""
_BAR_PITCH = 34
"""Distance from one bar to the next in pixels."""
_TICK_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


LineStyle = Literal["", "dashed", "dotted", "dash-dot"]


@dataclass(frozen=True)
class Series:
    """One line of a line chart.

    Attributes:
        values: for each x, the values that were measured with different random seeds. At an x
            without values, and on a logarithmic axis at 0, the line has a gap.
        colour: number of the colour. Default: the position of the series in the chart.
    """

    name: str
    x: Sequence[float]
    values: Sequence[Sequence[float]]
    colour: int | None = None
    style: LineStyle = ""


@dataclass(frozen=True)
class LineChart:
    """Lines with common axes.

    A line connects the mean values at each x. A band shows the range from the lowest to the highest
    value.

    Attributes:
        zero: True if the y axis includes 0. Ignored if the axis is logarithmic. Default: True.
        title: a line above the chart. Default: none.
        labels: labels of the places 0, 1, 2, … on the x axis, instead of numbers.
        vertical_line: x position of a dotted line. Default: no line.
    """

    x_label: str
    y_label: str
    series: Sequence[Series]
    logarithmic_x: bool = False
    logarithmic_y: bool = False
    zero: bool = True
    title: str = ""
    labels: Sequence[str] = ()
    vertical_line: float | None = None


@dataclass(frozen=True)
class BarChart:
    """One bar for each name. The bar shows the mean of the values, and dots show the single values.

    Attributes:
        zero: True if the axis includes 0. Default: True.
        scale: "logarithmic" for a logarithmic axis, on which a value of 0 has no bar. Default: a
            linear axis.
        groups: a name for each bar. Bars with the same name have the same colour.
    """

    label: str
    names: Sequence[str]
    values: Sequence[Sequence[float]]
    zero: bool = True
    scale: Literal["", "logarithmic"] = ""
    groups: Sequence[str] = ()


Chart = LineChart | BarChart


def render_svg(*charts: Chart, title: str = "") -> Svg:
    """Return charts, side by side, as one self-contained <svg> element."""
    drawing = Drawing(title, "; ".join(map(_accessible_name, charts)))
    top = 24.0 if title else 0.0
    for chart in charts:
        drawing.origin = (drawing.right + 24 if drawing.shapes[1:] else 0.0, top)
        draw_chart(drawing, chart)
    return drawing.render()


def draw_chart(drawing: Drawing, chart: Chart) -> None:
    """Draw a chart at the origin of a drawing."""
    match chart:
        case LineChart():
            _draw_line_chart(drawing, chart)
        case BarChart():
            _draw_bar_chart(drawing, chart)
        case _:
            assert_never(chart)


def _accessible_name(chart: Chart) -> str:
    """Return what the chart shows, for screen readers."""
    match chart:
        case LineChart():
            names = ", ".join(series.name for series in chart.series)
            return f"Line chart: {chart.y_label} by {chart.x_label}, for {names}"
        case BarChart():
            means = [f"{sum(values) / len(values):.4g}" for values in chart.values]
            bars = ", ".join(map(" ".join, zip(chart.names, means, strict=True)))
            return f"Bar chart: {chart.label}: {bars}"
        case _:
            assert_never(chart)


def _draw_line_chart(drawing: Drawing, chart: LineChart) -> None:
    width = float(_WIDTH)
    if chart.labels:
        width = max(_LABEL_WIDTH * len(chart.labels) + 100.0, 320.0)
    if chart.title:
        drawing.text(0, 8, chart.title, "start", "bold")
    entries = [(series.name, _line_style(chart, series)) for series in chart.series]
    top = _draw_legend(drawing, entries, width, 26 if chart.title else 8) + 22
    bottom = top + _HEIGHT
    all_y = [value for series in chart.series for values in series.values for value in values]
    y_axis = create_axis(all_y, bottom, top, logarithmic=chart.logarithmic_y, zero=chart.zero)
    left = 30 + max(text_width(format_tick(tick)) for tick in y_axis.ticks)
    for tick in y_axis.ticks:
        y = y_axis.position(tick)
        drawing.line((left, y), (width, y), style="grid", width=1)
        drawing.text(left - 6, y, format_tick(tick), "end", "soft")
    x_axis, end = _draw_x_axis(drawing, chart, (left, width), bottom)
    if chart.vertical_line is not None:
        x = x_axis.position(chart.vertical_line)
        drawing.line((x, top), (x, bottom), style="line dotted", width=1)
    for series in chart.series:
        _draw_line(drawing, series, _line_style(chart, series), x_axis, y_axis)
    drawing.text((left + width) / 2, end + 16, chart.x_label, style="soft")
    drawing.text(8, (top + bottom) / 2, chart.y_label, style="soft", rotation=-90)


def _draw_x_axis(
    drawing: Drawing, chart: LineChart, ends: tuple[float, float], y: float
) -> tuple["Axis", float]:
    """Draw the labels of the x axis. Return the axis, and y of the lower end of the labels."""
    left, right = ends
    if not chart.labels:
        all_x = [x for series in chart.series for x in series.x]
        axis = _measured_axis(all_x, left, right, chart.logarithmic_x)
        for tick in axis.ticks:
            drawing.text(axis.position(tick), y + 14, format_tick(tick), style="soft")
        return axis, y + 18
    axis = Axis(0, max(len(chart.labels) - 1, 1), left + 16, right - 16, ())
    for place, label in enumerate(chart.labels):
        drawing.text(axis.position(place), y + 14, label, "end", "soft", rotation=-60)
    return axis, y + 18 + 0.87 * widest(chart.labels)


def _line_style(chart: LineChart, series: Series) -> str:
    number = chart.series.index(series) if series.colour is None else series.colour
    return f"line{number % SERIES_COUNT} {series.style}".strip()


def _draw_line(
    drawing: Drawing, series: Series, style: str, x_axis: "Axis", y_axis: "Axis"
) -> None:
    fill = style.split()[0].replace("line", "fill")

    def is_drawn(point: tuple[float, Sequence[float]]) -> bool:
        return bool(point[1]) and not (y_axis.logarithmic and max(point[1]) <= 0)

    for drawn, group in groupby(zip(series.x, series.values, strict=True), is_drawn):
        if not drawn:
            continue
        points = list(group)
        lows = [(x_axis.position(x), y_axis.position(min(values))) for x, values in points]
        highs = [(x_axis.position(x), y_axis.position(max(values))) for x, values in points]
        means = [(x_axis.position(x), y_axis.position(sum(v) / len(v))) for x, v in points]
        if lows != highs:
            drawing.polygon([*lows, *reversed(highs)], fill, opacity=0.16)
        drawing.line(*means, style=style, width=2.2)
        for x, y in means:
            drawing.circle(x, y, 3, fill)


def _draw_bar_chart(drawing: Drawing, chart: BarChart) -> None:
    groups = list(dict.fromkeys(chart.groups))
    entries = [(name, f"line{number % SERIES_COUNT}") for number, name in enumerate(groups)]
    top = _draw_legend(drawing, entries, _WIDTH, 8) if groups else 0.0
    left = 14 + max(text_width(name) for name in chart.names)
    right = left + _WIDTH - 170.0
    all_values = [value for values in chart.values for value in values]
    axis = create_axis(all_values, left, right, logarithmic=bool(chart.scale), zero=chart.zero)
    bottom = top + 12 + _BAR_PITCH * len(chart.names)
    for tick in axis.ticks:
        x = axis.position(tick)
        drawing.line((x, top + 8), (x, bottom), style="grid", width=1)
        drawing.text(x, bottom + 12, format_tick(tick), style="soft")
    start = axis.position(0.0 if axis.low <= 0 <= axis.high else axis.low)
    for number, (name, values) in enumerate(zip(chart.names, chart.values, strict=True)):
        y = top + 27 + _BAR_PITCH * number
        mean = sum(values) / len(values)
        end = axis.position(mean)
        colour = groups.index(chart.groups[number]) % SERIES_COUNT if groups else 0
        drawing.text(left - 8, y, name, "end")
        begin, length = min(start, end), abs(end - start)
        drawing.rectangle(begin, y - 10, length, 20, f"fill{colour}", radius=3, opacity=0.75)
        for value in values if len(values) > 1 else ():
            drawing.circle(axis.position(value), y, 2.6, "dot", opacity=0.55)
        rightmost = max(end, *(axis.position(value) for value in values))
        drawing.text(rightmost + 8, y, f"{mean:.4g}", "start")
    drawing.text((left + right) / 2, bottom + 32, chart.label, style="soft")


def _draw_legend(
    drawing: Drawing, entries: Sequence[tuple[str, str]], width: float, y: float
) -> float:
    """Draw the names of lines or bars, each with a line of its style. Return y of the last row.

    entries: names and styles
    """
    x = 0.0
    for name, style in entries:
        name_width = 36 + text_width(name)
        if x and x + name_width > width:
            x, y = 0.0, y + 20
        drawing.line((x, y), (x + 22, y), style=style, width=3)
        drawing.text(x + 28, y, name, "start")
        x += name_width + 16
    return y


@dataclass(frozen=True)
class Axis:
    """Maps values from `low` to `high` to pixels from `begin` to `end`.

    Attributes:
        ticks: the values that are labelled.
        logarithmic: True for a logarithmic scale. On this scale, all values below `low`, such as
            zero and negative values, map to `begin`.
    """

    low: float
    high: float
    begin: float
    end: float
    ticks: tuple[float, ...]
    logarithmic: bool = False

    def position(self, value: float) -> float:
        """Return the pixel of a value."""
        low, high, at = (self._linear(each) for each in (self.low, self.high, value))
        return self.begin + (self.end - self.begin) * (at - low) / (high - low)

    def _linear(self, value: float) -> float:
        return math.log10(max(value, self.low)) if self.logarithmic else value


def create_axis(
    values: Sequence[float], begin: float, end: float, *, logarithmic: bool, zero: bool = False
) -> Axis:
    """Return an axis that covers all values, with ticks at round numbers.

    A logarithmic axis covers only the positive values.

    Args:
        zero: make the axis include 0. Ignored by a logarithmic axis.
    """
    values = values or [0.0, 1.0]
    low, high = min(values), max(values)
    if logarithmic:
        positive = [value for value in values if value > 0] or [1.0]
        low, high = min(positive), max(positive)
        ticks = power_of_ten_ticks(low, high)
        return Axis(min(low, ticks[0]), max(high, ticks[-1]), begin, end, ticks, True)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-99):
        high = low + (abs(low) if abs(low) > 1e-99 else 1.0)  # all values are equal
    ticks = round_ticks(low, high)
    return Axis(ticks[0], max(ticks[-1], high), begin, end, ticks)


def _measured_axis(values: Sequence[float], left: float, right: float, logarithmic: bool) -> Axis:
    """Return the x axis of a line chart. It has a tick at each x value of the data.

    A tick is omitted if its label would overlap the label of the tick before it.

    left, right: ends of the axis in pixels
    """
    measured = sorted(set(values)) or [0.0, 1.0]  # without data, the axis is still drawn
    if len(measured) == 1:
        measured = [measured[0], measured[0] * 2 or 1.0]
    label_width = max(text_width(format_tick(value)) for value in measured) + 14
    capacity = (right - left) / label_width
    low, high, begin, end = measured[0], measured[-1], left + 10, right - 10
    axis = Axis(low, high, begin, end, tuple(measured), logarithmic)
    kept: list[float] = []
    for tick in measured:
        if not kept or axis.position(tick) - axis.position(kept[-1]) > (right - left) / capacity:
            kept.append(tick)
    return Axis(low, high, begin, end, tuple(kept), logarithmic)


def round_ticks(low: float, high: float, count: int = 5) -> tuple[float, ...]:
    """Return about `count` round numbers.

    The first is at or below `low`, the last is at or above `high`.
    """
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in _TICK_STEPS if size * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(float(f"{multiple * step:.12g}") for multiple in range(first, last + 1))


def power_of_ten_ticks(low: float, high: float) -> tuple[float, ...]:
    """Return powers of ten. The first is at or below `low`, the last is at or above `high`.

    If there are more than seven, some are omitted so that the rest are equally spaced.
    """
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    last = max(last, first + 1)
    stride = max(1, math.ceil((last - first) / 6))
    last = first + stride * math.ceil((last - first) / stride)
    return tuple(10.0**power for power in range(first, last + 1, stride))


def format_tick(value: float) -> str:
    """Format a number in few characters: 0.25, 1,500, 3·10⁷."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e6 or size < 1e-3:
        mantissa, _, power = f"{value:.0e}".partition("e")
        sign = "-" if mantissa.startswith("-") else ""
        digit = mantissa.removeprefix("-")
        ten = f"10{_superscript(int(power))}"
        return f"{sign}{ten}" if digit == "1" else f"{sign}{digit}·{ten}"
    return f"{value:,.0f}" if size >= 1_000 else f"{value:.4g}"


def _superscript(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
