"""Attention matrices as a picture in a file."""

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from seqloom.core.errors import ConfigError
from seqloom.core.extras import import_optional
from seqloom.core.storage import write_file

FORMATS = ("png", "svg", "pdf")
_CELL = 0.36
"""Inches from one token to the next."""
_LARGEST = 30.0
"""Inches of the longer side of a matrix: hundreds of tokens move closer together."""
_LONGEST = 40
"""Characters of a label."""
_LETTER = 0.09
"""Inches of a letter of a label."""


@dataclass(frozen=True)
class Matrix:
    """weights (T, S), output tokens down and source tokens across, under a title."""

    weights: Sequence[Sequence[float]]
    outputs: Sequence[str]
    sources: Sequence[str]
    title: str = ""

    @property
    def cell(self) -> float:
        """Inches from one token to the next."""
        return min(_CELL, _LARGEST / max(len(self.sources), len(self.outputs), 1))

    @property
    def size(self) -> tuple[float, float]:
        """Inches across and down, labels and title included."""
        beside = 0.6 + _LETTER * _widest(self.outputs)
        # Turned by 60 degrees, a label is almost as high as it is long.
        above = 0.6 + _LETTER * _widest(self.sources)
        lines = self.title.split("\n")
        title_width = 0.3 + 0.1 * max(cell_len(line) for line in lines)
        across = max(self.cell * len(self.sources) + beside, title_width)
        return across, self.cell * len(self.outputs) + above + 0.2 * len(lines)


def save_attention(
    path: Path,
    weights: Sequence[Sequence[float]],
    outputs: Sequence[str],
    sources: Sequence[str],
    title: str = "",
) -> None:
    """Draw weights (T, S), output tokens down and source tokens across; the suffix is the format."""
    save_matrices(path, [Matrix(weights, outputs, sources, title)])


def save_matrices(path: Path, matrices: Sequence[Matrix]) -> None:
    """One under the other; the suffix is the format."""
    kind = picture_format(path)
    figures = import_optional("matplotlib.figure", "plots", "drawing attention")
    sizes = [one.size for one in matrices]
    heights = [high for _, high in sizes]
    figure = figures.Figure(
        figsize=(max(wide for wide, _ in sizes), sum(heights)), layout="constrained"
    )
    grid = figure.subplots(len(matrices), 1, squeeze=False, height_ratios=heights)
    for axes, matrix in zip(grid.flat, matrices, strict=True):
        _draw(axes, matrix)
    write_file(path, _rendered(figure, kind))


def _draw(axes: Any, matrix: Matrix) -> None:
    outputs, sources = (
        [_short(one) for one in matrix.outputs],
        [_short(one) for one in matrix.sources],
    )
    if matrix.title:
        axes.set_title(matrix.title, parse_math=False)
    if not matrix.outputs:  # a blank line, of which there is only the title to show
        axes.axis("off")
        return
    axes.imshow(matrix.weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    # Dollar signs in a text are dollars, not mathematics.
    axes.set_xticks(range(len(sources)), sources, rotation=60, ha="left", parse_math=False)
    axes.set_yticks(range(len(outputs)), outputs, parse_math=False)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for name in ("top", "right", "bottom", "left"):
        axes.spines[name].set_visible(False)
    axes.set_xticks([column + 0.5 for column in range(len(sources) - 1)], minor=True)
    axes.set_yticks([row + 0.5 for row in range(len(outputs) - 1)], minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="minor", length=0)


def picture_format(path: Path) -> str:
    """What a picture's name says it is to be."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise ConfigError(
            f"{path}: pictures are {', '.join(FORMATS)}; name the file {path.stem}.png"
        )
    return kind


def _widest(labels: Sequence[str]) -> int:
    return max((cell_len(_short(label)) for label in labels), default=1)


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"


def _rendered(figure: object, kind: str) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # A font without some script draws boxes for it: still a picture, no reason to stop.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(buffer, format=kind, dpi=160)  # type: ignore[attr-defined]
    return buffer.getvalue()
