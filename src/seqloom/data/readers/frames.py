"""Reads sequences of real-valued vectors (frames) with labels.

The source of an example is a sequence of frames, written as text: commas separate the numbers of a
frame, and spaces separate the frames.

    0.5,-1.2 0.6,-1.1 0.4,-0.9     three frames of two numbers
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from seqloom.config.schema.corpora import FramesConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example
from seqloom.data.readers.csv_cells import Numbers, parse_number, read_cells, read_column_names
from seqloom.data.readers.text_files import locate_all


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


def read_frames(config: FramesConfig, folder: str) -> Iterator[Example]:
    """Yield one example per sequence. If `config.labels` is "frame", the target has one label per
    frame. If `config.labels` is "sequence", the target is the label of the whole sequence."""
    for path in locate_all(config.path, folder):
        yield from _read_file(path, config)


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
