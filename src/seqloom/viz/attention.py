"""An attention matrix as a picture in a file."""

import io
import warnings
from collections.abc import Sequence
from pathlib import Path

from seqloom.core.errors import ConfigError
from seqloom.core.extras import require
from seqloom.core.storage import write_file

FORMATS = ("png", "svg", "pdf")
_CELL = 0.36
"""Inches from one token to the next."""
_LARGEST = 30.0
"""Inches of the longer side: hundreds of tokens move closer together."""
_LONGEST = 40
"""Characters of a label."""


def save_attention(
    path: Path,
    weights: Sequence[Sequence[float]],
    outputs: Sequence[str],
    sources: Sequence[str],
    title: str = "",
) -> None:
    """Draw weights (T, S), output tokens down and source tokens across; the suffix is the format."""
    kind = picture_format(path)
    figures = require("matplotlib.figure", "plots", "drawing attention")
    outputs, sources = [_short(label) for label in outputs], [_short(label) for label in sources]
    margin = 0.6 + 0.09 * max((len(label) for label in (*outputs, *sources)), default=1)
    cell = min(_CELL, _LARGEST / max(len(sources), len(outputs), 1))
    title_width = 0.3 + 0.1 * max(len(line) for line in title.split("\n"))
    size = (max(cell * len(sources) + margin, title_width), cell * len(outputs) + margin)
    figure = figures.Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
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
    if title:
        axes.set_title(title, parse_math=False)
    write_file(path, _rendered(figure, kind))


def picture_format(path: Path) -> str:
    """What a picture's name says it is to be."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise ConfigError(
            f"{path}: pictures are {', '.join(FORMATS)}; name the file {path.stem}.png"
        )
    return kind


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"


def _rendered(figure: object, kind: str) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # A font without some script draws boxes for it: still a picture, no reason to stop.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(buffer, format=kind, dpi=160)  # type: ignore[attr-defined]
    return buffer.getvalue()
