"""The images of a corpus, decoded once and read through a memory map."""

import json
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seqloom.core.batch import Images
from seqloom.data.images import read_pixels

IMAGES = "images.bytes"
IMAGE_ROWS = "images.rows"
IMAGE_SHAPE = "images.json"

Sizes = NDArray[Any]
"""Of any kind of integer."""


class ImageSide:
    """The images of many examples; each lies there once, however often it is spoken of.

    pixels: (N, 3, size, size)
    rows:   (examples,) the image of each
    """

    def __init__(self, folder: Path) -> None:
        self.rows: Sizes = np.fromfile(folder / IMAGE_ROWS, dtype=np.int64)
        size = json.loads((folder / IMAGE_SHAPE).read_bytes())["size"]
        self._map = np.memmap(folder / IMAGES, dtype=np.uint8, mode="r").reshape(-1, 3, size, size)
        self.pixels: NDArray[np.uint8] = np.asarray(self._map)

    def take(self, indices: Sizes) -> Images:
        """Some of them, in this order."""
        return Images(torch.from_numpy(self.pixels[self.rows[indices]]))

    def release(self) -> None:
        """They stay: an epoch looks at each of them several times."""


class ImageWriter:
    """Appends images, each of them once."""

    total = unknown = 0
    """Tokens: there are none."""

    def __init__(self, folder: Path, size: int) -> None:
        self._folder = folder
        self._size = size
        self._places: dict[str, int] = {}
        self._rows = array("q")
        (folder / IMAGE_SHAPE).write_text(json.dumps({"size": size}))

    def append(self, reference: str) -> None:
        if reference not in self._places:
            self._places[reference] = len(self._places)
            with (self._folder / IMAGES).open("ab") as file:
                file.write(read_pixels(reference, self._size).tobytes())
        self._rows.append(self._places[reference])

    def close(self) -> None:
        (self._folder / IMAGE_ROWS).write_bytes(self._rows.tobytes())
