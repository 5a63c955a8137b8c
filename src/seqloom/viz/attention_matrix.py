"""Draw matrices of attention weights."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqloom.viz.drawing import (
    LINE_HEIGHT,
    Drawing,
    Svg,
    title_text,
    token_label,
    widest,
)

_NUMBERED_CELL = (46.0, 28.0)
"""Minimum width and the height of cells that contain their number, in pixels."""
_MAX_HORIZONTAL_LABEL = 64
_MAX_NUMBERED_WIDTH = 1600
"""Maximum width of a matrix with numbers, in pixels."""
_CELL = 26.0
_MAX_LENGTH = 2600
"""Maximum width and height of a matrix, in pixels. Cells of larger matrices are made smaller."""
_MAX_RECTANGLES = 2500
"""Larger matrices are drawn as one image, with a pixel for each cell."""
_MAX_LABEL_CELLS = 24
_SHADE = (8, 81, 156)
"""Colour of the cells of an image: red, green, blue. The opacity of a cell is its weight."""


@dataclass(frozen=True)
class AttentionPanel:
    """One matrix of a figure: weights (T, S), with a row per output token and a column per source
    token.

    title: lines of text above the matrix
    """

    weights: Sequence[Sequence[float]]
    outputs: Sequence[str]
    sources: Sequence[str]
    title: str = ""


def draw_attention_matrix(
    weights: Sequence[Sequence[float]],
    outputs: Sequence[str],
    sources: Sequence[str],
    title: str = "Attention weights",
) -> Svg:
    """Draw weights (T, S) from 0 to 1: one row per output token, one column per source token."""
    title = "\n".join(map(title_text, title.split("\n")))
    return draw_attention_panels([AttentionPanel(weights, outputs, sources, title)])


def draw_attention_panels(panels: Sequence[AttentionPanel]) -> Svg:
    """Draw several matrices below each other."""
    drawing = Drawing("", " ".join(map(_description, panels)))
    for panel in panels:
        top = drawing.bottom + 24 if drawing.shapes else 0.0
        for line in panel.title.split("\n"):
            drawing.origin = (0, top)
            drawing.text(0, 8, line, "start", "bold")
            top += LINE_HEIGHT
        drawing.origin = (0, top + 10)
        draw_matrix(drawing, panel.weights, panel.outputs, panel.sources)
    return drawing.render()


def draw_matrix(
    drawing: Drawing,
    weights: Sequence[Sequence[float]],
    outputs: Sequence[str],
    sources: Sequence[str],
    *,
    signed: bool = False,
) -> None:
    """Draw a matrix with labels at the origin of a drawing.

    weights: (T, S) numbers from 0 to 1. If `signed` is True, any numbers: negative numbers are blue
             and positive numbers red, relative to the largest absolute value
    """
    if not outputs or not sources:  # a blank source has no tokens
        return
    values = np.asarray(weights, dtype=float)
    largest = (float(np.abs(values).max()) or 1.0) if signed else 1.0
    decimals = max(2 - math.floor(math.log10(largest)), 0)
    entries = [[f"{round(value, decimals) + 0.0:.{decimals}f}" for value in row] for row in weights]
    rows, columns = (
        [token_label(piece, _MAX_LABEL_CELLS) for piece in pieces] for pieces in (outputs, sources)
    )
    width, height = _NUMBERED_CELL
    width = max(width, widest([entry for row in entries for entry in row]) + 12)
    if widest(columns) <= _MAX_HORIZONTAL_LABEL:
        width = max(width, widest(columns) + 10)
    numbered = width * len(columns) <= _MAX_NUMBERED_WIDTH and height * len(rows) <= _MAX_LENGTH
    if not numbered:
        width, height = (min(_CELL, _MAX_LENGTH / len(labels)) for labels in (columns, rows))
    left, top = _draw_labels(drawing, rows, columns, (width, height))
    if values.size > _MAX_RECTANGLES and not signed:
        pixels = np.full((*values.shape, 4), (*_SHADE, 0), dtype=np.uint8)
        pixels[..., 3] = np.round(255 * values.clip(0, 1))
        drawing.image(left, top, width * len(columns), height * len(rows), pixels)
        return
    gap = 2 if width > 12 else 0
    for (row, column), value in np.ndenumerate(values):
        place = (left + width * column, top + height * row, width - gap, height - gap)
        entry = entries[row][column] if numbered else ""
        style = "positive" if signed and value > 0 else "shade"
        draw_cell(drawing, place, abs(value) / largest, entry, style)


def _draw_labels(
    drawing: Drawing, rows: Sequence[str], columns: Sequence[str], cell: tuple[float, float]
) -> tuple[float, float]:
    """Draw the labels of a matrix. Return x and y of the upper left corner of its first cell.

    The labels of the columns are rotated if they are wider than a cell.

    cell: width and height of a cell in pixels
    """
    width, height = cell
    rotated = widest(columns) + 4 > width
    left, top = widest(rows) + 12, 0.87 * widest(columns) + 16 if rotated else 24.0
    for column, label in enumerate(columns):
        x, size = left + width * (column + 0.5), min(13.0, max(width, 4))
        if rotated:
            drawing.text(x, top - 10, label, "start", size=size, rotation=-60)
        else:
            drawing.text(x, top - 14, label, size=size)
    for row, label in enumerate(rows):
        y, size = top + height * (row + 0.5), min(13.0, max(height, 4))
        drawing.text(left - 8, y, label, "end", size=size)
    return left, top


def draw_cell(
    drawing: Drawing,
    place: tuple[float, float, float, float],
    fraction: float,
    entry: str,
    style: str = "shade",
) -> None:
    """Draw a cell of a matrix, shaded by its value, with its number.

    place:    x, y, width and height
    fraction: value of the cell, relative to the largest possible value
    """
    x, y, width, height = place
    drawing.rectangle(x, y, width, height, style, radius=3, opacity=0.04 + 0.96 * fraction)
    is_dark = fraction > 0.7
    drawing.text(x + width / 2, y + height / 2, entry, style="on-result" if is_dark else "")


def _description(panel: AttentionPanel) -> str:
    """Return a description for screen readers: for each row, the column with the largest weight."""
    best = [
        f"{token_label(label)} attends most to {token_label(panel.sources[int(np.argmax(row))])}"
        for label, row in zip(panel.outputs, panel.weights, strict=True)
        if panel.sources
    ]
    return f"{panel.title}. {'; '.join(best)}."
