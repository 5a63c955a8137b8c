"""Draw how a query is looked up in a table of keys and values, in a terminal or as a figure."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from seqloom.analysis.lookup import LookupResult, LookupTable
from seqloom.nn.formulas import indexed
from seqloom.viz.figures import create_figure, save_figure
from seqloom.viz.terminal_format import (
    draw_bar,
    fit_to_line,
    format_column,
    format_number,
    pad_to_width,
)

_BAR_CELLS = 9
_COLUMN_CELLS = 18
_MAX_LABEL_CELLS = 16
_DARK, _MIDDLE, _GRID, _QUERY = "#08306b", "#6baed6", "#e5e7eb", "#b45309"
NO_GRADIENT = (
    "With exact and nearest, a small change of q or of a key does not change the\n"
    "result, so these gradients are zero. With soft they are not."
)


def draw_lookup(
    table: LookupTable, results: Sequence[LookupResult], *, ascii_only: bool = False
) -> Text:
    """Draw a table that compares lookup methods ("exact", "nearest" and "soft").

    Each method has a column with its scores, attention weights, result and gradients.
    """
    names = [_key_name(index) for index in range(len(table.keys))]
    keys = [f"{name} {format_vector(key)}" for name, key in zip(names, table.keys, strict=True)]
    lines = [(f"q = {format_vector(table.query)}", "bold")]
    margin = max(len(result.method) for result in results) + 2
    lines += [(f"  {result.method:<{margin}}α = {result.formula}", "") for result in results]
    header = [*(result.method for result in results)]
    values = [format_vector(value) for value in table.values]
    rows = _Rows(ascii_only)
    rows.section("values and scores e", ["value", *header])
    scores = [format_column(result.scores) for result in results]
    for index, key in enumerate(keys):
        rows.add(key, [values[index], *(column[index] for column in scores)])
    rows.section("weights α", ["", *header])
    for index, key in enumerate(keys):
        weights = [result.weights[index] for result in results]
        rows.add(key, ["", *(_weight(weight, ascii_only) for weight in weights)])
    rows.section("result r = Σ α v", ["", *header])
    rows.add("r", ["", *(format_vector(result.result) for result in results)])
    for number in range(len(table.values[0])):
        symbol = "r" if len(table.values[0]) == 1 else indexed("r", number + 1)
        rows.section(f"gradient of {symbol} with respect to the query and the keys", ["", *header])
        rows.add("q", ["", *(format_vector(each.query_gradient[number], 3) for each in results)])
        for index, name in enumerate(names):
            gradients = [each.key_gradients[number][index] for each in results]
            rows.add(name, ["", *(format_vector(gradient, 3) for gradient in gradients)])
    drawing = Text()
    for line, style in (*lines, *rows.lines):
        drawing.append(f"{fit_to_line(line, 200, ascii_only)}\n", style)
    if any(result.method != "soft" for result in results):
        drawing.append(f"\n{NO_GRADIENT}\n", "dim")
    return drawing


class _Rows:
    """Collects the lines of a table. A line has a label, a value, and a cell per lookup method."""

    def __init__(self, ascii_only: bool) -> None:
        self.lines: list[tuple[str, str]] = []
        self._ascii_only = ascii_only

    def section(self, title: str, header: Sequence[str]) -> None:
        self.lines += [("", ""), (title, "bold blue")]
        self._append("", header, "dim")

    def add(self, label: str, cells: Sequence[str]) -> None:
        self._append(label, cells, "")

    def _append(self, label: str, cells: Sequence[str], style: str) -> None:
        widths = (_MAX_LABEL_CELLS, 8, *[_COLUMN_CELLS] * (len(cells) - 1))
        columns = [
            pad_to_width(fit_to_line(cell, width - 1, self._ascii_only), width)
            for cell, width in zip((label, *cells), widths, strict=True)
        ]
        self.lines.append((f"  {''.join(columns)}".rstrip(), style))


def _weight(weight: float, ascii_only: bool) -> str:
    text = format_number(weight)
    bar = draw_bar(weight, _BAR_CELLS, ascii_only)
    return f"{pad_to_width(text, max(7, cell_len(text) + 1))}{bar}"


def _key_name(index: int) -> str:
    return indexed("k", index + 1)


def format_vector(numbers: Sequence[float], digits: int = 4) -> str:
    """Format a vector: (2, 2.5). A vector of one number has no brackets."""
    written = [f"{number + 0.0:.{digits}g}" for number in numbers]
    return written[0] if len(written) == 1 else f"({', '.join(written)})"


def save_lookup(path: Path, table: LookupTable, results: Sequence[LookupResult]) -> None:
    """Draw the attention weights of each lookup method, for example "nearest" or "soft".

    If the keys have two dimensions, they are also drawn as points in the plane.

    The suffix of `path` selects the image format.
    """
    is_plane = len(table.query) == 2
    rows, columns = (2 if is_plane else 1), len(results)
    size = (0.6 + 3.4 * columns, 5.6 if is_plane else 2.6)
    figure = create_figure(path, size, "drawing a lookup")
    for position, result in enumerate(results, start=1):
        title = f"{result.method}: r = {format_vector(result.result)}"
        if is_plane:
            plane = figure.add_subplot(rows, columns, position)
            _draw_plane(plane, table, result)
            plane.set_title(title, loc="left", fontsize=11, parse_math=False)
        bars = figure.add_subplot(rows, columns, (rows - 1) * columns + position)
        _draw_bars(bars, table, result)
        if not is_plane:
            bars.set_title(title, loc="left", fontsize=11, parse_math=False)
    save_figure(path, figure)


def _draw_plane(axes: Any, table: LookupTable, result: LookupResult) -> None:
    """Draw the keys as points in the plane, and the query as a cross.

    The point of a key is larger and darker if its attention weight is larger.
    """
    query = table.query
    for index, (key, weight) in enumerate(zip(table.keys, result.weights, strict=True)):
        axes.plot(*zip(query, key, strict=True), color=_MIDDLE, linewidth=5 * weight, zorder=1)
        size = 60 + 240 * weight
        axes.scatter(*key, s=size, color="white", edgecolor=_DARK, zorder=2)
        axes.scatter(*key, s=size, color=_DARK, alpha=weight, linewidth=0, zorder=3)
        note = f"k{index + 1}: v = {format_vector(table.values[index])}"
        axes.annotate(note, key, (0, 13), textcoords="offset points", ha="center", fontsize=9)
    axes.scatter(*query, s=70, marker="x", color=_QUERY, linewidth=2.5, zorder=4)
    axes.annotate("q", query, (-16, -4), textcoords="offset points", fontsize=10, color=_QUERY)
    # Both axes show the same length, so that distances can be compared.
    columns = list(zip(query, *table.keys, strict=True))
    half = 0.7 * max(max(column) - min(column) for column in columns) or 1.0
    for column, set_limits in zip(columns, (axes.set_xlim, axes.set_ylim), strict=True):
        centre = (max(column) + min(column)) / 2
        set_limits(centre - half, centre + half)
    axes.set_aspect("equal")
    _remove_frame(axes)


def _draw_bars(axes: Any, table: LookupTable, result: LookupResult) -> None:
    names = [f"k{index + 1}" for index in range(len(table.keys))]
    bars = axes.bar(names, result.weights, color=_DARK, width=0.6)
    axes.bar_label(bars, [f"{weight:.2g}" for weight in result.weights], fontsize=9, padding=2)
    axes.set_ylim(0, 1.15)
    axes.set_yticks([0, 0.5, 1])
    axes.set_ylabel("weight", fontsize=9)
    _remove_frame(axes)


def _remove_frame(axes: Any) -> None:
    axes.grid(color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=9)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
