"""An attention matrix as shaded blocks in a terminal.

            das   gefällt   mir
    I       ░░░             ▓▓▓
    like          ███████
    it      ▓▓▓   ░░░░░░░   ░░░

Each row is one token that was put out, each column one that was read; the darker a block, the
more of the row's attention went there. Where there is no colour, numbers say it: the percent of a
row that went to a column, a point for less than one.

            das   gefällt   mir
    I        12         .    88
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from rich.cells import cell_len
from rich.text import Text

from seqloom.viz.words import one_line, padded

Marks = Literal["blocks", "letters", "numbers"]
"""Shaded blocks; ASCII letters, labels in ASCII too; or percent, labels as they are."""
BLOCKS = " ░▒▓█"
LETTERS = " .:-=+*#%@"
_BOUNDS = (0.05, 0.2, 0.4, 0.7)
_STYLES = ("", "blue", "blue", "cyan", "bold cyan")
_MAX_LABEL = 16
_GAP = "  "


def draw_attention(
    weights: Sequence[Sequence[float]],
    outputs: Sequence[str],
    sources: Sequence[str],
    *,
    width: int = 80,
    marks: Marks = "blocks",
) -> Text:
    """Draw weights (T, S), each row adding up to one, in lines of at most `width` cells.

    Source tokens head their columns if they fit; otherwise columns are numbered and explained
    below. What is too wide even so is drawn in several strips, one under the other.
    """
    assert len(weights) == len(outputs), "one row for each output"
    assert all(len(row) == len(sources) for row in weights), "one column for each source"
    pen = _Pen(marks)
    rows = [pen.label(output) for output in outputs]
    words = [pen.label(source) for source in sources]
    margin = max((cell_len(row) for row in rows), default=0)
    room = max(width - margin, 8)
    widths = [max(cell_len(word), pen.narrowest) for word in words]
    if sum(widths) + len(_GAP) * len(widths) <= room:
        return pen.strip(weights, rows, words, margin)
    picture = Text()
    numbers = [str(number) for number in range(1, len(words) + 1)]
    digits = max(len(numbers[-1]), pen.narrowest)
    per_strip = max(room // (digits + len(_GAP)), 1)
    for start in range(0, len(numbers), per_strip):
        strip = [list(row[start : start + per_strip]) for row in weights]
        heads = [number.rjust(digits) for number in numbers[start : start + per_strip]]
        picture.append(pen.strip(strip, rows, heads, margin))
        picture.append("\n")
    picture.append(_legend(numbers, words, width))
    return picture


@dataclass(frozen=True)
class _Pen:
    marks: Marks

    @property
    def ascii_only(self) -> bool:
        return self.marks == "letters"

    @property
    def narrowest(self) -> int:
        """Cells of a column."""
        return 3 if self.marks == "numbers" else 2

    def label(self, text: str) -> str:
        return one_line(text, _MAX_LABEL, self.ascii_only)

    def strip(
        self,
        weights: Sequence[Sequence[float]],
        rows: Sequence[str],
        heads: Sequence[str],
        margin: int,
    ) -> Text:
        """The heads of some columns, and under them a line for each row."""
        widths = [max(cell_len(head), self.narrowest) for head in heads]
        picture = Text(" " * margin)
        for head, cells in zip(heads, widths, strict=True):
            picture.append(_GAP + padded(head, cells), "bold")
        for row, label in zip(weights, rows, strict=True):
            picture.append("\n" + padded(label, margin), "bold")
            for weight, cells in zip(row, widths, strict=True):
                picture.append(_GAP)
                picture.append(self.mark(weight, cells), self.style(weight))
        picture.append("\n")
        return picture

    def mark(self, weight: float, cells: int) -> str:
        """What stands for a weight, as wide as its column."""
        share = 0.0 if math.isnan(weight) else min(max(weight, 0.0), 1.0)
        match self.marks:
            case "blocks":
                return BLOCKS[_level(weight)] * cells
            case "letters":
                return LETTERS[min(int(share * len(LETTERS)), len(LETTERS) - 1)] * cells
            case "numbers":
                percent = round(100 * share)
                return (str(percent) if percent else ".").rjust(cells)
            case _:
                assert_never(self.marks)

    def style(self, weight: float) -> str:
        return _STYLES[_level(weight)]


def _level(weight: float) -> int:
    return sum(weight >= bound for bound in _BOUNDS)


def _legend(numbers: Sequence[str], words: Sequence[str], width: int) -> Text:
    """1 das  2 gefällt  3 mir, in lines of at most `width` cells."""
    lines: list[str] = [""]
    for number, word in zip(numbers, words, strict=True):
        entry = f"{number} {word}"
        joined = f"{lines[-1]}{_GAP}{entry}" if lines[-1] else entry
        if cell_len(joined) <= width or not lines[-1]:
            lines[-1] = joined
        else:
            lines.append(entry)
    return Text("\n".join(lines) + "\n", "dim")
