"""Draw line and bar charts as SVG, without a plotting library.

The colours adapt to light and dark themes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import assert_never

from seqloom.viz.diagrams.svg import Svg

_WIDTH = 680
_LETTER = 6.6
"""Approximate width of a letter in pixels."""
_BAR_PITCH = 34
"""Distance from one bar to the next in pixels."""
_COLOUR_COUNT = 6
_TICK_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
STYLE = """
.chart{--ink:#1f2937;--soft:#6b7280;--line:#e5e7eb;--hue0:#08519c;--hue1:#d97706;--hue2:#4b9fd5;
--hue3:#7c3aed;--hue4:#0f766e;--hue5:#9f1239;font:12px system-ui,sans-serif}
@media(prefers-color-scheme:dark){.chart{--ink:#e5e7eb;--soft:#9ca3af;--line:#374151;--hue0:#6baed6;
--hue1:#fbbf24;--hue2:#c6dbef;--hue3:#c4b5fd;--hue4:#5eead4;--hue5:#fda4af}}
.chart text{fill:var(--soft)}.chart .name{fill:var(--ink)}
.chart .grid{stroke:var(--line);stroke-width:1}.chart .mean{fill:none;stroke-width:2.2;
stroke-linejoin:round}.chart .band{opacity:.16;stroke:none}.chart .dot{stroke:none}
.chart .seed{fill:var(--ink);opacity:.55}
"""


@dataclass(frozen=True)
class Series:
    """One line of a line chart.

    values: for each x, the values that were measured with different random seeds
    """

    name: str
    x: Sequence[float]
    values: Sequence[Sequence[float]]


@dataclass(frozen=True)
class LineChart:
    """Lines with common axes.

    A line connects the mean values at each x. A band shows the range from the lowest to the highest
    value.

    Attributes:
        zero: True if the y axis includes 0. Ignored if the axis is logarithmic. Default: True.
    """

    x_label: str
    y_label: str
    series: Sequence[Series]
    logarithmic_x: bool = False
    logarithmic_y: bool = False
    zero: bool = True


@dataclass(frozen=True)
class BarChart:
    """One bar for each name. The bar shows the mean of the values, and dots show the single values.

    Attributes:
        zero: True if the axis includes 0. Default: True.
    """

    label: str
    names: Sequence[str]
    values: Sequence[Sequence[float]]
    zero: bool = True


Chart = LineChart | BarChart


def render_svg(chart: Chart) -> Svg:
    """Return the chart as one self-contained <svg> element."""
    match chart:
        case LineChart():
            height, content = _line_chart(chart)
        case BarChart():
            height, content = _bar_chart(chart)
        case _:
            assert_never(chart)
    return Svg(
        f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:g}" '
        f'role="img" aria-label="{escape(_accessible_name(chart))}"><style>{STYLE}</style>'
        f"{content}</svg>"
    )


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


def _line_chart(chart: LineChart) -> tuple[float, str]:
    """Return the height of a line chart in pixels, and its SVG elements."""
    legend, legend_rows = _legend([series.name for series in chart.series])
    top, bottom = 22 + 20 * legend_rows, 22 + 20 * legend_rows + 270
    all_y = [value for series in chart.series for values in series.values for value in values]
    all_x = [x for series in chart.series for x in series.x]
    y_axis = create_axis(all_y, bottom, top, logarithmic=chart.logarithmic_y, zero=chart.zero)
    left = 30 + _LETTER * max(len(format_tick(tick)) for tick in y_axis.ticks)
    x_axis = _measured_axis(all_x, left, _WIDTH - 16, chart.logarithmic_x)
    elements = [legend, *_horizontal_grid(y_axis, left), *_x_tick_labels(x_axis, bottom)]
    for number, series in enumerate(chart.series):
        elements.append(_line(number, series, x_axis, y_axis))
    elements.append(_text((left + _WIDTH - 16) / 2, bottom + 36, chart.x_label, "middle"))
    middle = (top + bottom) / 2
    rotation = f'transform="rotate(-90 12 {middle:.1f})"'
    elements.append(_text(12, middle, chart.y_label, "middle", extra=rotation))
    return bottom + 46, "".join(elements)


def _line(number: int, series: Series, x_axis: "Axis", y_axis: "Axis") -> str:
    colour = f"var(--hue{number % _COLOUR_COUNT})"
    points = list(zip(series.x, series.values, strict=True))
    lows = [(x_axis.position(x), y_axis.position(min(v))) for x, v in points]
    highs = [(x_axis.position(x), y_axis.position(max(v))) for x, v in points]
    means = [(x_axis.position(x), y_axis.position(sum(v) / len(v))) for x, v in points]
    dots = "".join(
        f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3" style="fill:{colour}"/>'
        for x, y in means
    )
    band = _svg_points([*lows, *reversed(highs)])
    return (
        f'<polygon class="band" points="{band}" style="fill:{colour}"/>'
        f'<polyline class="mean" points="{_svg_points(means)}" style="stroke:{colour}"/>{dots}'
    )


def _bar_chart(chart: BarChart) -> tuple[float, str]:
    """Return the height of a bar chart in pixels, and its SVG elements."""
    left = 14 + _LETTER * max(len(name) for name in chart.names)
    right = _WIDTH - 74
    all_values = [value for values in chart.values for value in values]
    axis = create_axis(all_values, left, right, logarithmic=False, zero=chart.zero)
    bottom = 12 + _BAR_PITCH * len(chart.names)
    elements = []
    for tick in axis.ticks:
        x = axis.position(tick)
        elements.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="8" y2="{bottom}"/>')
        elements.append(_text(x, bottom + 16, format_tick(tick), "middle"))
    start = axis.position(0.0 if axis.low <= 0 <= axis.high else axis.low)
    for number, (name, values) in enumerate(zip(chart.names, chart.values, strict=True)):
        y = 12 + _BAR_PITCH * number
        mean = sum(values) / len(values)
        end = axis.position(mean)
        elements.append(_text(left - 8, y + 19, name, "end", css_class="name"))
        elements.append(
            f'<rect x="{min(start, end):.1f}" y="{y + 5}" width="{abs(end - start):.1f}" '
            f'height="{_BAR_PITCH - 14}" rx="3" style="fill:var(--hue0);opacity:.75"/>'
        )
        elements += [
            f'<circle class="seed" cx="{axis.position(value):.1f}" cy="{y + 15}" r="2.6"/>'
            for value in values
        ]
        rightmost = max(end, *(axis.position(value) for value in values))
        elements.append(_text(rightmost + 8, y + 19, f"{mean:.4g}", "start", css_class="name"))
    elements.append(_text((left + right) / 2, bottom + 36, chart.label, "middle"))
    return bottom + 46, "".join(elements)


def _legend(names: Sequence[str]) -> tuple[str, int]:
    """Return the SVG elements of the legend, and the number of rows of the legend."""
    elements, x, row = [], 16.0, 0
    for number, name in enumerate(names):
        width = 30 + _LETTER * len(name)
        if x > 16 and x + width > _WIDTH:
            x, row = 16.0, row + 1
        y = 14 + 20 * row
        colour = f"var(--hue{number % _COLOUR_COUNT})"
        elements.append(
            f'<rect x="{x:.0f}" y="{y - 6}" width="16" height="4" rx="2" style="fill:{colour}"/>'
        )
        elements.append(_text(x + 22, y, name, "start", css_class="name"))
        x += width + 16
    return "".join(elements), row + 1


def _horizontal_grid(y_axis: "Axis", left: float) -> list[str]:
    elements = []
    for tick in y_axis.ticks:
        y = y_axis.position(tick)
        elements.append(
            f'<line class="grid" x1="{left:.0f}" x2="{_WIDTH - 16}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        elements.append(_text(left - 6, y + 4, format_tick(tick), "end"))
    return elements


def _x_tick_labels(x_axis: "Axis", bottom: float) -> list[str]:
    return [
        _text(x_axis.position(tick), bottom + 18, format_tick(tick), "middle")
        for tick in x_axis.ticks
    ]


def _text(
    x: float, y: float, text: str, anchor: str, *, css_class: str = "", extra: str = ""
) -> str:
    attribute = f' class="{css_class}"' if css_class else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{attribute} {extra}>'
        f"{escape(text)}</text>"
    )


def _svg_points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


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
    measured = sorted(set(values))
    if len(measured) == 1:
        measured = [measured[0], measured[0] * 2 or 1.0]
    label_width = _LETTER * (max(len(format_tick(value)) for value in measured) + 2)
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
