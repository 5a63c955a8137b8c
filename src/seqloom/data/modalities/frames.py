"""Frames as a source: sequences of real-valued vectors.

The source of an example is a sequence of frames, written as text: commas separate the numbers of a
frame, and spaces separate the frames.

    0.5,-1.2 0.6,-1.1 0.4,-0.9     three frames of two numbers

A corpus stores the normalised frames in two files, which are read through memory maps:

    frames.values   the vectors of all sequences, one sequence after the other: float32
    frames.offsets  (N + 1,) int64. Sequence i consists of the vectors offsets[i] to offsets[i + 1] - 1
"""

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from seqloom.config.schema.corpora import FramesConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import DataError, StorageError
from seqloom.core.signature import Vectors
from seqloom.core.storage import write_file
from seqloom.data.corpus.dataset import IntArray
from seqloom.data.example import Example
from seqloom.data.modalities.modality import Modality, SourceInput, SourceWriter
from seqloom.data.readers.csv_cells import Numbers, parse_number, read_cells, read_column_names
from seqloom.data.readers.reader import Reader, Records
from seqloom.text.tokenizer import Tokenizer
from seqloom.text.vocabulary import END, SPECIAL_TOKENS

if TYPE_CHECKING:  # imports torch, which takes seconds, and worker processes do not need it
    from seqloom.core.batch import Padded

VALUES_FILE = "frames.values"
OFFSETS_FILE = "frames.offsets"
SCALE_FILE = "scale.json"
Frames = NDArray[np.float32]
"""(S, D) normalised vectors"""


@dataclass(frozen=True)
class FrameInput(SourceInput):
    """A sequence of normalised frames.

    frames: (S, D)
    """

    frames: Frames

    @property
    def length(self) -> int:
        return len(self.frames)

    @classmethod
    def collate(cls, inputs: Sequence[Self]) -> "Padded":
        return pad_frames([one.frames for one in inputs])


@dataclass(frozen=True)
class FrameModality(Modality):
    """Frames, normalised. A frame is a vector of D numbers.

    mean, deviation: (D,) mean and standard deviation of each component over all training frames. A
                     deviation of 0 is replaced by 1.
    """

    file: ClassVar[str] = VALUES_FILE
    mean: Numbers
    deviation: Numbers

    @classmethod
    def learn(cls, config: RunConfig, tokenizer: Tokenizer | None, sources: Iterable[str]) -> Self:
        return cls.of(sources)

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
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
    def spec(self) -> Vectors:
        return Vectors(len(self.mean))

    def prepare(self, text: str) -> FrameInput:
        """Convert frames, given as text, to a model input: "0.5,-1.2 0.6,-1.1" is two frames."""
        return FrameInput(self.encode(text))

    def pieces(self, source: SourceInput) -> tuple[str, ...]:
        """Return the numbers of the frames, counted from 1, and END."""
        return (*map(str, range(1, (source.length or 0) + 1)), SPECIAL_TOKENS[END])

    def encode(self, text: str) -> Frames:
        """Parse and normalise a sequence of frames."""
        frames = parse_frames(text)
        if not len(frames):
            return np.zeros((0, self.spec.width), dtype=np.float32)
        if frames.shape[1] != self.spec.width:
            raise DataError(
                f"a frame has {frames.shape[1]} numbers, but the model reads {self.spec.width} per "
                "frame; use the same columns as in the training data"
            )
        normalised: Frames = ((frames - self.mean) / self.deviation).astype(np.float32)
        return normalised

    def _to_json(self) -> dict[str, list[float]]:
        return {"mean": self.mean.tolist(), "deviation": self.deviation.tolist()}

    @property
    def identity(self) -> list[Any]:
        return ["frames", self._to_json()]

    def save(self, folder: Path) -> None:
        write_file(folder / SCALE_FILE, json.dumps(self._to_json(), indent=1).encode())

    @classmethod
    def load(cls, config: RunConfig, folder: Path) -> Self:
        try:
            content = json.loads((folder / SCALE_FILE).read_bytes())
            return cls(**{name: np.array(value) for name, value in content.items()})
        except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise StorageError(
                f"{folder / SCALE_FILE}: cannot be read: {error}. Restore the run from a backup, or "
                "train again."
            ) from error

    def writer(self, folder: Path) -> "FrameWriter":
        return FrameWriter(folder, self)

    @classmethod
    def open(cls, folder: Path, shards: Sequence[Path]) -> "FrameStore":
        return FrameStore(shards[0])


def pad_frames(sequences: Sequence[Frames]) -> "Padded":
    """Pad sequences of frames with zeros on the right: values (B, S + 1, D), lengths (B,).

    S is the length of the longest sequence. After its last frame, each sequence has a vector of
    zeros, in the place where a source text has END. The lengths include this vector. The
    vector of zeros has no label.
    """
    import torch

    from seqloom.core.batch import Padded

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

    def take(self, indices: IntArray) -> "Padded":
        """Return the sequences of frames at `indices`, in this order, padded to one length."""
        return pad_frames(
            [self.values[self.offsets[index] : self.offsets[index + 1]] for index in indices]
        )

    def release(self) -> None:
        """Do nothing. Frames need little memory, so this memory is not freed."""


class FrameWriter(SourceWriter):
    """Writes sequences of frames to the files that `FrameStore` reads."""

    def __init__(self, folder: Path, modality: FrameModality) -> None:
        self._folder = folder
        self._modality = modality
        self._offsets = array("q", [0])
        (folder / VALUES_FILE).touch()

    def length(self, encoded: str) -> int:
        return len(encoded.split())

    def append(self, encoded: Sequence[str], examples: Sequence[Example]) -> None:
        with (self._folder / VALUES_FILE).open("ab") as file:
            for text, example in zip(encoded, examples, strict=True):
                try:
                    frames = self._modality.encode(text)
                except DataError as error:
                    raise DataError(f"{example.where}: {error}") from error
                file.write(frames.tobytes())
                self._offsets.append(self._offsets[-1] + len(frames))
        self.tokens = self._offsets[-1]

    def close(self) -> None:
        (self._folder / OFFSETS_FILE).write_bytes(self._offsets.tobytes())


@dataclass(frozen=True)
class FrameSequence:
    """One sequence of frames, read from consecutive rows of a CSV file. Each row is a frame.

    name:   value in the column that names the sequence
    text:   the frames as text
    labels: one label per frame; empty strings if the file has no labels
    line:   line number of the first frame
    """

    name: str
    text: str
    labels: tuple[str, ...]
    line: int


def format_frames(frames: Sequence[Sequence[float]]) -> str:
    """Convert frames to text. Each number is rounded to six significant digits."""
    return " ".join(",".join(f"{number:.6g}" for number in frame) for frame in frames)


def parse_frames(text: str) -> Numbers:
    """Convert the text of S frames with D numbers each to an array (S, D).

    If a frame is not valid, raise a DataError that names the first such frame.
    """
    rows: list[list[float]] = []
    for position, frame in enumerate(text.split(), start=1):
        try:
            row = [float(cell) for cell in frame.split(",")]
        except ValueError as error:
            raise DataError(
                f"frame {position}, '{frame}', is not a list of numbers; write a frame as numbers "
                "separated by commas, and separate frames by spaces: 0.5,-1.2 0.6,-1.1"
            ) from error
        if rows and len(row) != len(rows[0]):
            raise DataError(
                f"frame {position}, '{frame}', has {len(row)} numbers, but frame 1 has "
                f"{len(rows[0])}; all frames need the same count"
            )
        if not np.isfinite(row).all():
            raise DataError(
                f"frame {position}, '{frame}', contains a number that is not finite; correct it"
            )
        rows.append(row)
    return np.array(rows, dtype=np.float64).reshape(len(rows), -1)


class FramesReader(Reader[FramesConfig]):
    """Reads one example per sequence. If the setting `labels` is "frame", the target has one label
    per frame. If it is "sequence", the target is the label of the whole sequence."""

    def read(self) -> Records:
        for path in self.paths():
            yield from _read_file(path, self.corpus)


def _read_file(path: Path, config: FramesConfig) -> Iterator[Example]:
    for each in read_frame_sequences(path, config, with_labels=True):
        where = f"{path}:{each.line}"
        labels = each.labels
        wrong = next((label for label in labels if label.split() != [label]), None)
        if wrong is not None:
            raise DataError(
                f"{where}: sequence {each.name}: the label '{wrong}' must be one word; join words "
                "by _, and give every row a label"
            )
        if config.labels == "sequence":
            if len(set(labels)) > 1:
                raise DataError(
                    f"{where}: sequence {each.name} has the labels {', '.join(sorted(set(labels)))}, "
                    "but labels = 'sequence' needs the same label in all rows of a sequence; "
                    "correct the rows, or set labels = 'frame'"
                )
            labels = labels[:1]
        target = " ".join(labels)
        yield Example(each.text, target, (target,), where)


def read_frame_sequences(
    path: Path, config: FramesConfig, *, with_labels: bool
) -> Iterator[FrameSequence]:
    """Yield the sequences of a CSV file.

    with_labels: whether to read the column of labels. If True, the file must have this column. If
                 False, the labels are empty strings.
    """
    columns = config.columns or _other_columns(path, config)
    label_column = [config.label] if with_labels else []
    names, rows = read_cells(path, [config.sequence, *label_column, *columns])
    first = 1 + len(label_column)
    seen: set[str] = set()
    for name, group in groupby(rows, key=lambda row: row[1][0].strip()):
        lines = list(group)
        if name in seen:
            raise DataError(
                f"{path}:{lines[0][0]}: the rows of sequence '{name}' do not follow each other; sort "
                f"the file by the column {config.sequence}"
            )
        seen.add(name)
        frames = [
            [
                parse_number(cell, path, line, column)
                for cell, column in zip(cells[first:], names[first:], strict=True)
            ]
            for line, cells in lines
        ]
        labels = tuple(cells[1].strip() if with_labels else "" for _, cells in lines)
        yield FrameSequence(name, format_frames(frames), labels, lines[0][0])


def _other_columns(path: Path, config: FramesConfig) -> list[str]:
    """Return the names of all columns except the column that names the sequence and the column of
    labels."""
    used = ("", config.sequence, config.label)
    columns = [name for name in read_column_names(path) if name not in used]
    if not columns:
        raise DataError(
            f"{path}:1: there is no column of numbers beside {config.sequence} and {config.label}; "
            "add columns such as x1, x2"
        )
    return columns
