"""Lines and bars as SVG: no library, light and dark, to be put into a page or a file of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import assert_never

from seqloom.viz.ticks import Axis, axis, short

_WIDTH = 680
_LETTER = 6.6
"""How wide a letter of the labels is, about."""
_ROW = 34
"""From one bar to the next."""
_HUES = 6
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
    """A line: for each x the values that were found, one a seed."""

    name: str
    x: Sequence[float]
    values: Sequence[Sequence[float]]


@dataclass(frozen=True)
class Lines:
    """Lines over a common axis: the mean, in a band from the lowest to the highest value."""

    x_label: str
    y_label: str
    series: Sequence[Series]
    logarithmic_x: bool = False
    logarithmic_y: bool = False
    zero: bool = True
    """Does the upright axis begin at 0?"""


@dataclass(frozen=True)
class Bars:
    """A bar for each name: as long as the mean, with a dot for each value."""

    label: str
    names: Sequence[str]
    values: Sequence[Sequence[float]]
    zero: bool = True


Chart = Lines | Bars


def draw(chart: Chart) -> str:
    """The chart as one <svg> element that needs nothing else."""
    match chart:
        case Lines():
            height, inner = _lines(chart)
        case Bars():
            height, inner = _bars(chart)
        case _:
            assert_never(chart)
    return (
        f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:g}" '
        f'role="img"><style>{STYLE}</style>{inner}</svg>'
    )


def _lines(chart: Lines) -> tuple[float, str]:
    legend, rows = _legend([one.name for one in chart.series])
    top, bottom = 22 + 20 * rows, 22 + 20 * rows + 270
    everything = [value for one in chart.series for values in one.values for value in values]
    places = [x for one in chart.series for x in one.x]
    upright = axis(everything, bottom, top, logarithmic=chart.logarithmic_y, zero=chart.zero)
    left = 30 + _LETTER * max(len(short(tick)) for tick in upright.ticks)
    across = _across(places, left, _WIDTH - 16, chart.logarithmic_x)
    parts = [legend, *_grid(upright, left), *_foot(across, bottom)]
    for number, one in enumerate(chart.series):
        parts.append(_line(number, one, across, upright))
    middle = (left + _WIDTH - 16) / 2
    parts.append(_text(middle, bottom + 36, chart.x_label, "middle"))
    turn = f'transform="rotate(-90 12 {(top + bottom) / 2:.1f})"'
    parts.append(_text(12, (top + bottom) / 2, chart.y_label, "middle", extra=turn))
    return bottom + 46, "".join(parts)


def _across(places: Sequence[float], left: float, right: float, logarithmic: bool) -> Axis:
    """Ticks where something was measured, if there are few such places."""
    own = sorted(set(places))
    if len(own) == 1:
        own = [own[0], own[0] * 2 or 1.0]
    ticks = tuple(own)
    room = (right - left) / (_LETTER * (max(len(short(tick)) for tick in ticks) + 2))
    whole = Axis(own[0], own[-1], left + 10, right - 10, ticks, logarithmic)
    kept: list[float] = []
    for tick in ticks:
        if not kept or whole.place(tick) - whole.place(kept[-1]) > (right - left) / room:
            kept.append(tick)
    return Axis(own[0], own[-1], left + 10, right - 10, tuple(kept), logarithmic)


def _line(number: int, one: Series, across: Axis, upright: Axis) -> str:
    hue = f"var(--hue{number % _HUES})"
    lows = [
        (across.place(x), upright.place(min(v))) for x, v in zip(one.x, one.values, strict=True)
    ]
    highs = [
        (across.place(x), upright.place(max(v))) for x, v in zip(one.x, one.values, strict=True)
    ]
    means = [
        (across.place(x), upright.place(sum(v) / len(v)))
        for x, v in zip(one.x, one.values, strict=True)
    ]
    dots = "".join(
        f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3" style="fill:{hue}"/>'
        for x, y in means
    )
    return (
        f'<polygon class="band" points="{_points([*lows, *reversed(highs)])}" style="fill:{hue}"/>'
        f'<polyline class="mean" points="{_points(means)}" style="stroke:{hue}"/>{dots}'
    )


def _bars(chart: Bars) -> tuple[float, str]:
    left = 14 + _LETTER * max(len(name) for name in chart.names)
    right = _WIDTH - 74
    everything = [value for values in chart.values for value in values]
    across = axis(everything, left, right, logarithmic=False, zero=chart.zero)
    bottom = 12 + _ROW * len(chart.names)
    parts = []
    for tick in across.ticks:
        x = across.place(tick)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="8" y2="{bottom}"/>')
        parts.append(_text(x, bottom + 16, short(tick), "middle"))
    start = across.place(0.0 if across.low <= 0 <= across.high else across.low)
    for number, (name, values) in enumerate(zip(chart.names, chart.values, strict=True)):
        y = 12 + _ROW * number
        mean = sum(values) / len(values)
        end = across.place(mean)
        parts.append(_text(left - 8, y + 19, name, "end", kind="name"))
        parts.append(
            f'<rect x="{min(start, end):.1f}" y="{y + 5}" width="{abs(end - start):.1f}" '
            f'height="{_ROW - 14}" rx="3" style="fill:var(--hue0);opacity:.75"/>'
        )
        parts += [
            f'<circle class="seed" cx="{across.place(value):.1f}" cy="{y + 15}" r="2.6"/>'
            for value in values
        ]
        beyond = max(end, *(across.place(value) for value in values))
        parts.append(_text(beyond + 8, y + 19, f"{mean:.4g}", "start", kind="name"))
    parts.append(_text((left + right) / 2, bottom + 36, chart.label, "middle"))
    return bottom + 46, "".join(parts)


def _legend(names: Sequence[str]) -> tuple[str, int]:
    """A coloured mark and a name for each line, and how many rows they take."""
    parts, x, row = [], 16.0, 0
    for number, name in enumerate(names):
        wide = 30 + _LETTER * len(name)
        if x > 16 and x + wide > _WIDTH:
            x, row = 16.0, row + 1
        y = 14 + 20 * row
        hue = f"var(--hue{number % _HUES})"
        parts.append(
            f'<rect x="{x:.0f}" y="{y - 6}" width="16" height="4" rx="2" style="fill:{hue}"/>'
        )
        parts.append(_text(x + 22, y, name, "start", kind="name"))
        x += wide + 16
    return "".join(parts), row + 1


def _grid(upright: Axis, left: float) -> list[str]:
    parts = []
    for tick in upright.ticks:
        y = upright.place(tick)
        parts.append(
            f'<line class="grid" x1="{left:.0f}" x2="{_WIDTH - 16}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(_text(left - 6, y + 4, short(tick), "end"))
    return parts


def _foot(across: Axis, bottom: float) -> list[str]:
    return [_text(across.place(tick), bottom + 18, short(tick), "middle") for tick in across.ticks]


def _text(x: float, y: float, words: str, anchor: str, *, kind: str = "", extra: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named} {extra}>{escape(words)}</text>'


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
