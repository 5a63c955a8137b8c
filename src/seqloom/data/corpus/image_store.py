"""Images of a corpus. They are decoded once, stored as raw pixels and read through a memory map."""

import json
from array import array
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from seqloom.core.batch import Images
from seqloom.data.corpus.dataset import IntArray
from seqloom.data.readers.images import read_pixels

PIXELS_FILE = "images.bytes"
ROWS_FILE = "images.rows"
SHAPE_FILE = "images.json"


class ImageStore:
    """Reads the images of many examples. An image with several captions is stored once.

    pixels: (N, 3, size, size) pixels of the N distinct images
    rows:   (examples,) for each example, the index of its image in `pixels`
    """

    def __init__(self, folder: Path) -> None:
        self.rows: IntArray = np.fromfile(folder / ROWS_FILE, dtype=np.int64)
        size = json.loads((folder / SHAPE_FILE).read_bytes())["size"]
        mapped = np.memmap(folder / PIXELS_FILE, dtype=np.uint8, mode="r")
        self.pixels: NDArray[np.uint8] = np.asarray(mapped.reshape(-1, 3, size, size))

    def take(self, indices: IntArray) -> Images:
        """Return the images of the examples at `indices`, in this order."""
        return Images(torch.from_numpy(self.pixels[self.rows[indices]]))

    def release(self) -> None:
        """Do nothing: the pixels stay in memory, because an image with several captions is read
        several times in an epoch."""


class ImageWriter:
    """Writes the files of an `ImageStore`. Each distinct image is stored once."""

    def __init__(self, folder: Path, size: int) -> None:
        self._folder = folder
        self._size = size
        self._indices: dict[str, int] = {}
        self._rows = array("q")
        (folder / SHAPE_FILE).write_text(json.dumps({"size": size}))

    def append(self, path: str) -> None:
        if path not in self._indices:
            self._indices[path] = len(self._indices)
            with (self._folder / PIXELS_FILE).open("ab") as file:
                file.write(read_pixels(path, self._size).tobytes())
        self._rows.append(self._indices[path])

    def close(self) -> None:
        (self._folder / ROWS_FILE).write_bytes(self._rows.tobytes())
