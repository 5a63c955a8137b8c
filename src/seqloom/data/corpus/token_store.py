"""Token ids of many texts in two files, read through memory maps.

NAME.ids      the ids of all texts, one text after the other: uint16 or int32
NAME.offsets  (N + 1,) int64. Text i is ids[offsets[i] : offsets[i + 1]]
"""

import mmap
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from seqloom.data.corpus.dataset import IntArray
from seqloom.text.vocabulary import UNKNOWN

MAX_UINT16_VOCABULARY = 2**16
"""If a vocabulary has at most this number of tokens, each id is stored in two bytes, otherwise in
four bytes."""


@dataclass(frozen=True)
class TokenRows:
    """Several texts in one array.

    ids:     the ids of all texts, one text after the other
    lengths: (B,) int64, the number of ids of each text
    """

    ids: IntArray
    lengths: IntArray

    @classmethod
    def of(cls, rows: Sequence[IntArray]) -> Self:
        """Concatenate texts. Each text is given as an array of ids."""
        assert len(rows), "a batch needs at least one row"
        return cls(np.concatenate(rows), np.array([len(row) for row in rows], dtype=np.int64))


class TokenStore:
    """Reads the token ids of many texts from a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._maps: list[np.memmap[Any, Any]] = []
        self.offsets: IntArray = self._map(folder / f"{name}.offsets", np.int64)
        tokens = int(self.offsets[-1])
        is_uint16 = tokens and (folder / f"{name}.ids").stat().st_size == 2 * tokens
        self.ids: IntArray = self._map(folder / f"{name}.ids", np.uint16 if is_uint16 else np.int32)
        self.lengths: IntArray = np.diff(self.offsets).astype(np.int32)

    def _map(self, path: Path, dtype: type[Any]) -> NDArray[Any]:
        if path.stat().st_size == 0:  # an empty file cannot be mapped
            return np.zeros(0, dtype=dtype)
        self._maps.append(np.memmap(path, dtype=dtype, mode="r"))
        # Return a plain array that shares the memory of the map, because slicing an np.memmap is
        # ten times slower.
        return np.asarray(self._maps[-1])

    def __getitem__(self, index: int) -> IntArray:
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def take(self, indices: IntArray) -> TokenRows:
        """Return the texts at `indices`, in this order, without a Python loop."""
        lengths = self.lengths[indices].astype(np.int64)
        ends = np.cumsum(lengths)
        # Text n starts at ends[n] - lengths[n] in the result and at offsets[indices[n]] in ids.
        shifts = self.offsets[indices] - (ends - lengths)
        return TokenRows(self.ids[np.arange(ends[-1]) + np.repeat(shifts, lengths)], lengths)

    def release(self) -> None:
        """Free the memory of the pages read so far. They are read from disk again when needed.

        Does nothing on Windows, which has no such call.
        """
        if not hasattr(mmap, "MADV_DONTNEED"):
            return
        for mapped in self._maps:
            mapped._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


class TokenWriter:
    """Appends texts to the two files of a `TokenStore`."""

    def __init__(self, ids: BinaryIO, offsets: BinaryIO, vocabulary_size: int) -> None:
        self._ids = ids
        self._typecode = "H" if vocabulary_size <= MAX_UINT16_VOCABULARY else "i"
        self._offsets = offsets
        self.total = 0
        self.unknown = 0
        offsets.write(np.int64(0).tobytes())

    def append(self, ids: list[int]) -> None:
        self._ids.write(array(self._typecode, ids).tobytes())
        self.total += len(ids)
        self.unknown += ids.count(UNKNOWN)
        self._offsets.write(self.total.to_bytes(8, "little"))
