"""Format text, numbers and bars so that terminal columns stay aligned."""

import math
import unicodedata
from collections.abc import Mapping, Sequence

from rich.cells import cell_len, set_cell_size
from rich.text import Text

_EIGHTHS = " ▏▎▍▌▋▊▉█"


def fit_to_line(text: str, limit: int, ascii_only: bool = False) -> str:
    """Return `text` on one line of at most `limit` cells.

    Control characters and line breaks are replaced, because they would move the cursor.
    """
    line = "".join("·" if _moves_cursor(character) else character for character in text)
    if ascii_only:
        plain = unicodedata.normalize("NFKC", line.replace("▁", "_").replace("·", "."))
        line = plain.encode("ascii", "replace").decode()
    if cell_len(line) > limit:
        line = set_cell_size(line, limit - 1).rstrip() + ("~" if ascii_only else "…")
    if any(unicodedata.bidirectional(character) in ("R", "AL") for character in line):
        # Isolate right-to-left text. Otherwise the terminal also reorders the rest of the line.
        line = f"\N{FIRST STRONG ISOLATE}{line}\N{POP DIRECTIONAL ISOLATE}"
    return line


def _moves_cursor(character: str) -> bool:
    """True for control characters, line breaks, and format characters such as direction marks.

    False for the zero width joiner, which is a format character but part of emoji.
    """
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or (
        unicodedata.category(character) == "Cf" and character != "\N{ZERO WIDTH JOINER}"
    )


def pad_to_width(text: str, cells: int) -> str:
    """Append spaces until `text` is this many cells wide."""
    return text + " " * (cells - cell_len(text))


def strip_word_marker(piece: str) -> str:
    """Return a piece without SentencePiece's leading "▁". The piece "▁" itself stays unchanged."""
    return piece.removeprefix("▁") or piece


def format_number(value: float) -> str:
    """Format a number with three decimals.

    Integers have no decimals. Very small and very large numbers are in scientific notation, for
    example 1.0e-05.
    """
    if not math.isfinite(value):
        return str(float(value))
    if value == round(value) and abs(value) < 1e6:
        return f"{value + 0.0:.0f}"  # the sum turns -0.0 into 0.0
    return f"{value:.3f}" if 0.0005 <= abs(value) < 1e6 else f"{value:.1e}"


def format_column(values: Sequence[float]) -> list[str]:
    """Format a column of numbers: no decimals if all are integers, otherwise three decimals.

    If a number is too small for three decimals, each number is formatted on its own by
    `format_number`, which uses scientific notation for very small numbers.
    """
    if all(math.isfinite(value) and value == round(value) and abs(value) < 1e6 for value in values):
        return [f"{value + 0.0:.0f}" for value in values]
    has_tiny = any(0 < abs(value) < 0.0005 for value in values)
    return [format_number(v) if has_tiny or not math.isfinite(v) else f"{v:.3f}" for v in values]


def draw_bar(fraction: float, cells: int, ascii_only: bool = False) -> str:
    """Return a bar that fills this fraction (0 to 1) of `cells`.

    The length is rounded to eighths of a cell, or to whole cells if `ascii_only` is True.
    """
    fraction = min(max(fraction, 0.0), 1.0)
    if ascii_only:
        return "#" * round(fraction * cells)
    eighths = round(fraction * cells * 8)
    if fraction >= 0.0005:
        eighths = max(eighths, 1)  # A value that is printed as 0.001 or more has a visible bar.
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def draw_columns(
    labels: Sequence[str],
    columns: Mapping[str, Sequence[str]],
    bars: Sequence[Text],
    *,
    header_styles: Sequence[str] = (),
    indent: int = 2,
    highlighted: int | None = None,
) -> Text:
    """Draw a table with a line for each label: the label, its numbers and a bar.

    columns:       numbers of each column, by the header of the column
    bars:          a bar for each line
    header_styles: styles of the first headers. The other headers are dim.
    highlighted:   index of a label to print in bold
    """
    margin = indent + max(map(cell_len, labels))
    widths = {name: max(len(name), *map(len, values)) for name, values in columns.items()}
    drawing = Text(" " * margin)
    for column, (name, cells) in enumerate(widths.items()):
        style = header_styles[column] if column < len(header_styles) else "dim"
        drawing.append("   " + name.rjust(cells), style)
    drawing.append("\n")
    for row, label in enumerate(labels):
        style = "bold" if row == highlighted else ""
        drawing.append(pad_to_width(" " * indent + label, margin), style)
        for name, cells in widths.items():
            drawing.append("   " + columns[name][row].rjust(cells))
        drawing.append("  ")
        drawing.append(bars[row])
        drawing.rstrip()
        drawing.append("\n")
    return drawing
