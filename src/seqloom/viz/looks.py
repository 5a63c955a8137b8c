"""Where the words of a caption looked: the image once for each word, bright where it was seen."""

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqloom.core.extras import import_optional
from seqloom.core.storage import write_file
from seqloom.viz.attention import picture_format

_ACROSS = 6
"""Small images in a row."""
_DARK = 0.25
"""Brightness of what a word did not look at."""


@dataclass(frozen=True)
class Look:
    """An image with its caption.

    pixels:  (3, N, N) the square that was looked at
    pieces:  the words that were put out
    weights: (pieces, cells) where each of them looked, the cells of the grid in reading order
    """

    text: str
    pixels: NDArray[np.uint8]
    pieces: Sequence[str]
    weights: Sequence[Sequence[float]]


def save_looks(path: Path, looks: Sequence[Look]) -> None:
    """One block for each image; the suffix is the format."""
    kind = picture_format(path)
    figures = import_optional("matplotlib.figure", "plots", "drawing where words look")
    rows = [math.ceil((len(look.pieces) + 1) / _ACROSS) for look in looks]
    figure = figures.Figure(figsize=(1.5 * _ACROSS, 1.8 * sum(rows)), layout="constrained")
    grid = figure.subplots(sum(rows), _ACROSS, squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    for number, look in enumerate(looks):
        cells = iter(grid[sum(rows[:number]) : sum(rows[: number + 1])].flat)
        picture = look.pixels.transpose(1, 2, 0) / 255
        _draw(next(cells), picture, "")
        for piece, weights in zip(look.pieces, look.weights, strict=True):
            _draw(next(cells), picture * lit(weights, picture.shape[0])[..., None], piece)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=160)
    write_file(path, buffer.getvalue())


def lit(weights: Sequence[float], size: int) -> NDArray[np.float64]:
    """(cells,) -> (size, size) brightness: 1 at the most looked at, dark where nobody looked."""
    side = math.isqrt(len(weights))
    assert side * side == len(weights), "the grid of an image is square"
    grid = np.asarray(weights, dtype=np.float64).reshape(side, side)
    place = np.arange(size) * side // size
    return _DARK + (1 - _DARK) * (grid / max(grid.max(), 1e-12))[np.ix_(place, place)]


def _draw(axes: object, picture: NDArray[np.float64], label: str) -> None:
    axes.imshow(picture.clip(0, 1))  # type: ignore[attr-defined]
    axes.set_title(label.replace("▁", " ").strip(), fontsize=10, parse_math=False)  # type: ignore[attr-defined]
