"""Draw the attention of a caption.

The image is drawn once unchanged, and once for each token of the caption. In the drawing of a
token, a cell of the image is brighter if the token has a larger attention weight for this cell.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqloom.viz.drawing import Drawing, Svg

_IMAGES_PER_ROW = 6
_SIZE = 132.0
"""Side of an image in pixels."""
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


def draw_caption_attention(captions: Sequence[CaptionAttention]) -> Svg:
    """Draw a block of small images for each caption."""
    drawing = Drawing("", " ".join(f"{caption.text}." for caption in captions))
    for caption in captions:
        top = drawing.bottom + 16 if drawing.shapes else 0.0
        image = caption.pixels.transpose(1, 2, 0)
        brightness = [attention_brightness(weights, image.shape[0]) for weights in caption.weights]
        images = [image * each[..., None] for each in (np.ones(image.shape[:2]), *brightness)]
        labels = ["", *(piece.replace("▁", " ").strip() for piece in caption.pieces)]
        for number, (picture, label) in enumerate(zip(images, labels, strict=True)):
            row, column = divmod(number, _IMAGES_PER_ROW)
            x, y = column * (_SIZE + 12), top + row * (_SIZE + 28)
            drawing.text(x + _SIZE / 2, y + 8, label)
            pixels = np.dstack([picture, np.full(picture.shape[:2], 255)]).round().astype(np.uint8)
            drawing.image(x, y + 18, _SIZE, _SIZE, pixels)
    return drawing.render()


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
