"""Token ids of many texts, stored in the shards of a corpus and read through memory maps.

NAME is "source" or "target". The folder of a corpus with N texts contains this file:

NAME.lengths        (N,) int32, the number of ids of each text

The folder of a shard with n texts contains these files:

NAME.ids            the ids of all texts, one text after the other: uint16 or int32
NAME.offsets        (n + 1,) int64. Text i is ids[offsets[i] : offsets[i + 1]]
"""

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np

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


class MappedFile:
    """An array in a file, read through a memory map."""

    def __init__(self, path: Path, dtype: type[Any]) -> None:
        self._map: np.memmap[Any, Any] | None = None
        self.values: IntArray = np.zeros(0, dtype=dtype)
        if path.stat().st_size:  # an empty file cannot be mapped
            self._map = np.memmap(path, dtype=dtype, mode="r")
            # Use a plain array that shares the memory of the map, because slicing an np.memmap is
            # ten times slower.
            self.values = np.asarray(self._map)

    def release(self) -> None:
        """Free the memory of the data read so far. Data that is needed again is read from disk.

        Does nothing on Windows, which cannot free this memory.
        """
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


class TokenShard:
    """Reads the token ids of the texts of one shard."""

    def __init__(self, folder: Path, name: str) -> None:
        self._offsets = MappedFile(folder / f"{name}.offsets", np.int64)
        self.offsets = self._offsets.values
        tokens = int(self.offsets[-1])
        is_uint16 = tokens and (folder / f"{name}.ids").stat().st_size == 2 * tokens
        self._ids = MappedFile(folder / f"{name}.ids", np.uint16 if is_uint16 else np.int32)
        self.ids = self._ids.values

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> IntArray:
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def take(self, indices: IntArray) -> TokenRows:
        """Return the texts at `indices`, in this order, without a Python loop."""
        starts = self.offsets[indices]
        lengths = self.offsets[indices + 1] - starts
        ends = np.cumsum(lengths)
        # Text n starts at ends[n] - lengths[n] in the result and at starts[n] in ids.
        shifts = starts - (ends - lengths)
        return TokenRows(self.ids[np.arange(ends[-1]) + np.repeat(shifts, lengths)], lengths)

    def release(self) -> None:
        self._offsets.release()
        self._ids.release()


class TokenStore:
    """Reads the token ids of many texts from the shards of a corpus.

    lengths: (N,) the number of ids of each text, memory-mapped
    """

    def __init__(self, folder: Path, shards: Sequence[Path], name: str) -> None:
        self.shards = [TokenShard(shard, name) for shard in shards]
        self._ends = np.cumsum([len(shard) for shard in self.shards])
        self._lengths = MappedFile(folder / f"{name}.lengths", np.int32)
        self.lengths = self._lengths.values

    @property
    def ids(self) -> IntArray:
        """The ids of all texts as one array. The corpus must have only one shard."""
        (shard,) = self.shards
        return shard.ids

    def __getitem__(self, index: int) -> IntArray:
        shard = int(np.searchsorted(self._ends, index, side="right"))
        return self.shards[shard][index - int(self._ends[shard]) + len(self.shards[shard])]

    def take(self, indices: IntArray) -> TokenRows:
        """Return the texts at `indices`, in this order."""
        if len(self.shards) == 1:
            return self.shards[0].take(indices)
        return TokenRows.of([self[index] for index in indices.tolist()])

    def release(self) -> None:
        """Free the memory of the data read so far. Data that is needed again is read from disk."""
        self._lengths.release()
        for shard in self.shards:
            shard.release()


class TokenWriter:
    """Writes texts to the two files of a shard: the token ids, and the offset of each text.

    total:   number of ids written so far
    unknown: number of ids of UNKNOWN among them
    """

    def __init__(self, folder: Path, name: str, vocabulary_size: int) -> None:
        self._ids = (folder / f"{name}.ids").open("wb")
        self._dtype = np.uint16 if vocabulary_size <= MAX_UINT16_VOCABULARY else np.int32
        self._offsets = (folder / f"{name}.offsets").open("wb")
        self.total = 0
        self.unknown = 0
        self._offsets.write(np.int64(0).tobytes())

    def append(self, texts: Sequence[Sequence[int]]) -> None:
        """Append several texts. Each text is given as a sequence of ids."""
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        ids = np.fromiter(chain.from_iterable(texts), self._dtype, int(lengths.sum()))
        self._ids.write(ids.tobytes())
        self._offsets.write((self.total + np.cumsum(lengths)).tobytes())
        self.total += len(ids)
        self.unknown += int(np.count_nonzero(ids == UNKNOWN))

    def close(self) -> None:
        self._ids.close()
        self._offsets.close()
