"""Draw how a query is looked up in a table of keys and values, in a terminal."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from seqloom.analysis.lookup import LookupResult, LookupTable
from seqloom.nn.formulas import indexed
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
