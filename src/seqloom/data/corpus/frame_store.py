"""Frames of a corpus: sequences of real-valued vectors, normalised and read through a memory map.

frames.values   the vectors of all sequences, one sequence after the other: float32
frames.offsets  (N + 1,) int64. Sequence i consists of the vectors offsets[i] to offsets[i + 1] - 1
"""

import json
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from seqloom.core.batch import Padded
from seqloom.core.errors import DataError, StorageError
from seqloom.core.storage import write_file
from seqloom.data.corpus.dataset import IntArray
from seqloom.data.readers.csv_cells import Numbers
from seqloom.data.readers.frames import parse_frames

VALUES_FILE = "frames.values"
OFFSETS_FILE = "frames.offsets"
SCALE_FILE = "scale.json"
Frames = NDArray[np.float32]
"""(S, D) normalised vectors"""


@dataclass(frozen=True)
class FrameScale:
    """Normalisation of frames. A frame is a vector of D numbers.

    mean, deviation: (D,) mean and standard deviation of each component over all training frames. A
                     deviation of 0 is replaced by 1.
    """

    mean: Numbers
    deviation: Numbers

    @classmethod
    def learn(cls, texts: Iterable[str]) -> Self:
        """Compute the mean and standard deviation of each component from sequences of frames,
        given as text."""
        sequences = [frames for frames in map(parse_frames, texts) if len(frames)]
        widths = sorted({frames.shape[1] for frames in sequences})
        if len(widths) != 1:
            raise DataError(
                "data.train: all frames must have the same count of numbers, but there are frames "
                f"of {' and '.join(map(str, widths)) or 'no'} numbers; correct the columns"
            )
        rows = np.concatenate(sequences)
        deviation = rows.std(0)
        return cls(rows.mean(0), np.where(deviation > 0, deviation, 1.0))

    @property
    def width(self) -> int:
        """D, the number of components of a frame."""
        return len(self.mean)

    def encode(self, text: str) -> Frames:
        """Parse and normalise a sequence of frames."""
        frames = parse_frames(text)
        if not len(frames):
            return np.zeros((0, self.width), dtype=np.float32)
        if frames.shape[1] != self.width:
            raise DataError(
                f"a frame has {frames.shape[1]} numbers, but the model reads {self.width} per "
                "frame; use the same columns as in the training data"
            )
        normalised: Frames = ((frames - self.mean) / self.deviation).astype(np.float32)
        return normalised

    def to_json(self) -> dict[str, list[float]]:
        return {"mean": self.mean.tolist(), "deviation": self.deviation.tolist()}

    def save(self, folder: Path) -> None:
        write_file(folder / SCALE_FILE, json.dumps(self.to_json(), indent=1).encode())

    @classmethod
    def load(cls, folder: Path) -> Self:
        try:
            content = json.loads((folder / SCALE_FILE).read_bytes())
            return cls(**{name: np.array(value) for name, value in content.items()})
        except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise StorageError(
                f"{folder / SCALE_FILE}: cannot be read: {error}. Restore the run from a backup, or "
                "train again."
            ) from error


def pad_frames(sequences: Sequence[Frames]) -> Padded:
    """Pad sequences of frames with zeros on the right: values (B, S + 1, D), lengths (B,).

    S is the length of the longest sequence. After its last frame, each sequence has a vector of
    zeros, in the place where a source text has END. The lengths include this vector. The
    vector of zeros has no label.
    """
    lengths = torch.tensor([len(frames) + 1 for frames in sequences])
    values = torch.zeros(len(sequences), int(lengths.max()), sequences[0].shape[1])
    for row, frames in zip(values, sequences, strict=True):
        row[: len(frames)] = torch.from_numpy(frames.copy())
    return Padded(values, lengths)


class FrameStore:
    """Reads sequences of frames (vectors of numbers) from the files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.offsets: IntArray = np.fromfile(folder / OFFSETS_FILE, dtype=np.int64)
        self.lengths: IntArray = np.diff(self.offsets).astype(np.int32)
        total = int(self.offsets[-1])
        if total:
            mapped = np.memmap(folder / VALUES_FILE, dtype=np.float32, mode="r")
            self.values: Frames = np.asarray(mapped.reshape(total, -1))
        else:
            self.values = np.zeros((0, 1), dtype=np.float32)

    def take(self, indices: IntArray) -> Padded:
        """Return the sequences of frames at `indices`, in this order, padded to one length."""
        return pad_frames(
            [self.values[self.offsets[index] : self.offsets[index + 1]] for index in indices]
        )

    def release(self) -> None:
        """Do nothing. Frames need little memory, so this memory is not freed."""


class FrameWriter:
    """Writes sequences of frames (vectors of numbers) to the files that `FrameStore` reads."""

    def __init__(self, folder: Path, scale: FrameScale) -> None:
        self._folder = folder
        self._scale = scale
        self._offsets = array("q", [0])
        (folder / VALUES_FILE).touch()

    def append(self, text: str, where: str) -> int:
        """Append a sequence of frames, given as text. Return the number of frames.

        where: location of the sequence (file:line), for error messages
        """
        try:
            frames = self._scale.encode(text)
        except DataError as error:
            raise DataError(f"{where}: {error}") from error
        with (self._folder / VALUES_FILE).open("ab") as file:
            file.write(frames.tobytes())
        self._offsets.append(self._offsets[-1] + len(frames))
        return len(frames)

    def close(self) -> None:
        (self._folder / OFFSETS_FILE).write_bytes(self._offsets.tobytes())
