"""Draw an attention matrix in a terminal.

            das   gefällt   mir
    I       ░░░             ▓▓▓
    like          ███████
    it      ▓▓▓   ░░░░░░░   ░░░

Each row is an output token, each column a source token. A darker block is a larger weight. With
`marks="numbers"` the weights are percentages. A "." stands for a weight that rounds to 0 %:

            das   gefällt   mir
    I        12         .    88

With `marks="signs"` the matrix contains numbers between -1 and 1, for example scaled gradients. One
to three plus or minus signs stand for each number, more signs for a larger absolute value:

            das   gefällt   mir
    I       +     ---
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from rich.cells import cell_len
from rich.text import Text

from seqloom.viz.terminal_format import fit_to_line, pad_to_width

Marks = Literal["blocks", "letters", "numbers", "signs"]
"""How weights are drawn.

blocks:  shaded blocks
letters: ASCII characters. Labels are converted to ASCII too.
numbers: percentages
signs:   one to three plus or minus signs, for numbers between -1 and 1
"""
BLOCKS = " ░▒▓█"
LETTERS = " .:-=+*#%@"
_LEVEL_BOUNDS = (0.05, 0.2, 0.4, 0.7)
SIGN_BOUNDS = (0.05, 0.3, 0.7)
"""Absolute values from which a number is drawn with one, two and three signs."""
_LEVEL_STYLES = ("", "blue", "blue", "cyan", "bold cyan")
_MAX_LABEL_CELLS = 16
_GAP = "  "


def draw_attention(
    weights: Sequence[Sequence[float]],
    outputs: Sequence[str],
    sources: Sequence[str],
    *,
    width: int = 80,
    marks: Marks = "blocks",
) -> Text:
    """Draw an attention matrix in lines of at most `width` terminal cells.

    weights: (T, S) attention weights from 0 to 1; numbers from -1 to 1 if `marks` is "signs"

    Source tokens are the column headers if they fit. Otherwise the columns are numbered, and a
    legend below the matrix lists the tokens. If the numbered columns are still too wide, the matrix
    is split into several strips, one below the other.
    """
    assert len(weights) == len(outputs), "one row for each output token"
    assert all(len(row) == len(sources) for row in weights), "one column for each source token"
    renderer = _AttentionRenderer(marks)
    row_labels = [renderer.label(output) for output in outputs]
    source_labels = [renderer.label(source) for source in sources]
    margin = max((cell_len(label) for label in row_labels), default=0)
    available = max(width - margin, 8)
    widths = [max(cell_len(label), renderer.min_column_width) for label in source_labels]
    if sum(widths) + len(_GAP) * len(widths) <= available:
        return renderer.strip(weights, row_labels, source_labels, margin)
    drawing = Text()
    numbers = [str(number) for number in range(1, len(source_labels) + 1)]
    digits = max(len(numbers[-1]), renderer.min_column_width)
    columns_per_strip = max(available // (digits + len(_GAP)), 1)
    for start in range(0, len(numbers), columns_per_strip):
        end = start + columns_per_strip
        strip_weights = [list(row[start:end]) for row in weights]
        headers = [number.rjust(digits) for number in numbers[start:end]]
        drawing.append(renderer.strip(strip_weights, row_labels, headers, margin))
        drawing.append("\n")
    drawing.append(_legend(numbers, source_labels, width))
    return drawing


@dataclass(frozen=True)
class _AttentionRenderer:
    marks: Marks

    @property
    def min_column_width(self) -> int:
        return 3 if self.marks in ("numbers", "signs") else 2

    def label(self, token: str) -> str:
        return fit_to_line(token, _MAX_LABEL_CELLS, ascii_only=self.marks == "letters")

    def strip(
        self,
        weights: Sequence[Sequence[float]],
        row_labels: Sequence[str],
        headers: Sequence[str],
        margin: int,
    ) -> Text:
        """Draw a line of column headers, and below it one line for each row of weights.

        margin: width of the row labels in terminal cells
        """
        widths = [max(cell_len(header), self.min_column_width) for header in headers]
        drawing = Text(" " * margin)
        for header, cells in zip(headers, widths, strict=True):
            drawing.append(_GAP + pad_to_width(header, cells), "bold")
        for row, label in zip(weights, row_labels, strict=True):
            drawing.append("\n" + pad_to_width(label, margin), "bold")
            for weight, cells in zip(row, widths, strict=True):
                drawing.append(_GAP)
                drawing.append(self.mark(weight, cells), self.style(weight))
        drawing.append("\n")
        return drawing

    def style(self, weight: float) -> str:
        if self.marks == "signs":
            return "red" if weight < 0 else "blue"
        return _LEVEL_STYLES[_level(weight)]

    def mark(self, weight: float, cells: int) -> str:
        """Return the characters that show a weight, in a column that is `cells` wide."""
        fraction = 0.0 if math.isnan(weight) else min(max(weight, 0.0), 1.0)
        match self.marks:
            case "blocks":
                return BLOCKS[_level(weight)] * cells
            case "letters":
                return LETTERS[min(int(fraction * len(LETTERS)), len(LETTERS) - 1)] * cells
            case "numbers":
                percent = round(100 * fraction)
                return (str(percent) if percent else ".").rjust(cells)
            case "signs":
                count = sum(abs(weight) >= bound for bound in SIGN_BOUNDS)
                return (("-" if weight < 0 else "+") * count).ljust(cells)
            case _:
                assert_never(self.marks)


def _level(weight: float) -> int:
    return sum(weight >= bound for bound in _LEVEL_BOUNDS)


def _legend(numbers: Sequence[str], labels: Sequence[str], width: int) -> Text:
    """List the column numbers and their labels, for example "1 das  2 gefällt".

    A line has at most `width` terminal cells, unless a single label is longer.
    """
    lines: list[str] = [""]
    for number, label in zip(numbers, labels, strict=True):
        entry = f"{number} {label}"
        joined = f"{lines[-1]}{_GAP}{entry}" if lines[-1] else entry
        if cell_len(joined) <= width or not lines[-1]:
            lines[-1] = joined
        else:
            lines.append(entry)
    return Text("\n".join(lines) + "\n", "dim")
