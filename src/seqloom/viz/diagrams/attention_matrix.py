"""Draw a matrix of attention weights as SVG."""

from collections.abc import Sequence

from seqloom.viz.diagrams.svg import Drawing, Svg, title_text, token_label, widest

_ROW = 28
_MIN_COLUMN = 46


def draw_attention_matrix(
    weights: Sequence[Sequence[float]],
    outputs: Sequence[str],
    sources: Sequence[str],
    title: str = "Attention weights",
) -> Svg:
    """Draw weights (T, S) from 0 to 1: one row per output token, one column per source token."""
    rows, columns = ([token_label(piece) for piece in pieces] for pieces in (outputs, sources))
    width = max(_MIN_COLUMN, widest(columns) + 10)
    left = widest(rows) + 12
    drawing = Drawing(title_text(title), _description(weights, rows, columns))
    top = 52.0
    for column, label in enumerate(columns):
        drawing.text(left + width * (column + 0.5), top - 14, label)
    for row, label in enumerate(rows):
        y = top + _ROW * row
        drawing.text(left - 8, y + _ROW / 2, label, "end")
        for column, weight in enumerate(weights[row]):
            drawing.shaded_cell(left + width * column, y, width - 2, _ROW - 2, weight)
    return drawing.render()


def _description(
    weights: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[str]
) -> str:
    """Return a description for screen readers: for each row, the column with the largest weight."""
    best = [
        f"{label} attends most to {columns[max(range(len(row)), key=row.__getitem__)]}"
        for label, row in zip(rows, weights, strict=True)
        if columns
    ]
    return f"{'; '.join(best)}."
