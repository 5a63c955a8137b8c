"""Draw attention matrices as heat maps in an image file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from seqloom.viz.figures import create_figure, save_figure

_CELL_INCHES = 0.36
_MAX_MATRIX_INCHES = 30.0
"""Maximum length of the longer side of a matrix. Cells of larger matrices are made smaller."""
_MAX_LABEL_LENGTH = 40
_LETTER_INCHES = 0.09


@dataclass(frozen=True)
class AttentionPanel:
    """One heat map of a figure: weights (T, S), with a row per output token and a column per source
    token.
    """

    weights: Sequence[Sequence[float]]
    outputs: Sequence[str]
    sources: Sequence[str]
    title: str = ""

    @property
    def cell(self) -> float:
        """Side length of a cell of the heat map, in inches."""
        longer_side = max(len(self.sources), len(self.outputs), 1)
        return min(_CELL_INCHES, _MAX_MATRIX_INCHES / longer_side)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches, including labels and title."""
        label_width = 0.6 + _LETTER_INCHES * _longest_label(self.outputs)
        # Column labels are rotated by 60 degrees, so their height is close to their length.
        label_height = 0.6 + _LETTER_INCHES * _longest_label(self.sources)
        title_lines = self.title.split("\n")
        title_width = 0.3 + 0.1 * max(cell_len(line) for line in title_lines)
        width = max(self.cell * len(self.sources) + label_width, title_width)
        return width, self.cell * len(self.outputs) + label_height + 0.2 * len(title_lines)


def save_attention(
    path: Path,
    weights: Sequence[Sequence[float]],
    outputs: Sequence[str],
    sources: Sequence[str],
    title: str = "",
) -> None:
    """Draw weights (T, S) as one heat map. The suffix of `path` selects the image format."""
    save_attention_panels(path, [AttentionPanel(weights, outputs, sources, title)])


def save_attention_panels(path: Path, panels: Sequence[AttentionPanel]) -> None:
    """Draw several heat maps below each other in one figure."""
    widths = [panel.size[0] for panel in panels]
    heights = [panel.size[1] for panel in panels]
    figure = create_figure(path, (max(widths), sum(heights)), "drawing attention")
    grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
    for axes, panel in zip(grid.flat, panels, strict=True):
        _draw_panel(axes, panel)
    save_figure(path, figure)


def _draw_panel(axes: Any, panel: AttentionPanel) -> None:
    outputs = [_shorten(token) for token in panel.outputs]
    sources = [_shorten(token) for token in panel.sources]
    if panel.title:
        axes.set_title(panel.title, parse_math=False)
    # A blank input line has no tokens. Only the title is shown.
    if not panel.outputs:
        axes.axis("off")
        return
    axes.imshow(panel.weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    # parse_math=False: a dollar sign in a text does not start a formula.
    axes.set_xticks(range(len(sources)), sources, rotation=60, ha="left", parse_math=False)
    axes.set_yticks(range(len(outputs)), outputs, parse_math=False)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for side in ("top", "right", "bottom", "left"):
        axes.spines[side].set_visible(False)
    axes.set_xticks([column + 0.5 for column in range(len(sources) - 1)], minor=True)
    axes.set_yticks([row + 0.5 for row in range(len(outputs) - 1)], minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="minor", length=0)


def _longest_label(labels: Sequence[str]) -> int:
    return max((cell_len(_shorten(label)) for label in labels), default=1)


def _shorten(label: str) -> str:
    return label if len(label) <= _MAX_LABEL_LENGTH else f"{label[: _MAX_LABEL_LENGTH - 1]}…"
