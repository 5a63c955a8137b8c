"""Draw the attention of a caption.

The image is drawn once unchanged, and once for each token of the caption. In the drawing of a
token, a cell of the image is brighter if the token has a larger attention weight for this cell.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.viz.figures import create_figure, save_figure

_IMAGES_PER_ROW = 6
_MIN_BRIGHTNESS = 0.25
"""Brightness of cells with a weight of zero."""


@dataclass(frozen=True)
class CaptionAttention:
    """The attention of one caption over the cells of its image.

    Attributes:
        text: the caption.
        pixels: (3, N, N), the square part of the image that the encoder reads, N pixels wide.
        pieces: the output tokens.
        weights: (pieces, cells), the attention weights. The encoder divides the image into a
            square grid of cells, which are listed row by row.
    """

    text: str
    pixels: NDArray[np.uint8]
    pieces: Sequence[str]
    weights: Sequence[Sequence[float]]


def save_caption_attention(path: Path, captions: Sequence[CaptionAttention]) -> None:
    """Draw a block of small images for each caption. The suffix of `path` selects the format."""
    row_counts = [math.ceil((len(caption.pieces) + 1) / _IMAGES_PER_ROW) for caption in captions]
    size = (1.5 * _IMAGES_PER_ROW, 1.8 * sum(row_counts))
    figure = create_figure(path, size, "drawing the attention of captions")
    grid = figure.subplots(sum(row_counts), _IMAGES_PER_ROW, squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    for number, caption in enumerate(captions):
        block = iter(grid[sum(row_counts[:number]) : sum(row_counts[: number + 1])].flat)
        image = caption.pixels.transpose(1, 2, 0) / 255
        _draw_image(next(block), image, "")
        for piece, weights in zip(caption.pieces, caption.weights, strict=True):
            brightness = attention_brightness(weights, image.shape[0])
            _draw_image(next(block), image * brightness[..., None], piece)
    save_figure(path, figure)


def attention_brightness(weights: Sequence[float], size: int) -> NDArray[np.float64]:
    """Convert the attention weights of all cells to the brightness of each pixel: (size, size)

    The brightness is 1 in the cell with the largest weight and 0.25 in cells with a weight of zero.
    """
    side = math.isqrt(len(weights))
    assert side * side == len(weights), "the grid of an image is square"
    grid = np.asarray(weights, dtype=np.float64).reshape(side, side)
    cell_of_pixel = np.arange(size) * side // size
    relative = grid / max(grid.max(), 1e-12)
    return _MIN_BRIGHTNESS + (1 - _MIN_BRIGHTNESS) * relative[np.ix_(cell_of_pixel, cell_of_pixel)]


def _draw_image(axes: Any, image: NDArray[np.float64], label: str) -> None:
    axes.imshow(image.clip(0, 1))
    axes.set_title(label.replace("▁", " ").strip(), fontsize=10, parse_math=False)
