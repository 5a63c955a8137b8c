"""Cuts the text files of a corpus into parts of similar size.

Several processes tokenise the parts. The parts depend only on the files, so that the result does
not depend on the number of processes.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.core.errors import NotFoundError
from seqloom.data.readers.compression import is_compressed
from seqloom.data.readers.parallel_files import different_line_counts
from seqloom.data.readers.reader import Reader
from seqloom.data.readers.text_files import BLOCK_BYTES, FilePart

PART_BYTES = 2**24
"""Approximate size of a part in bytes. For parallel files, this is the size of the source part.

With larger parts, the processes would finish at different times. With smaller parts, a large corpus
would have more memory maps than Linux allows for a process (65,530; a shard of pairs has four)."""

FileParts = tuple[FilePart, ...]
"""One part of a file. For parallel files: one part of each file, all with the same lines."""


def cut_corpus(reader: Reader[Any]) -> tuple[list[FileParts], int] | None:
    """Cut the files of a corpus at line ends. Return the parts and the total number of lines.

    Return None if the corpus cannot be cut: a file is compressed, the format does not have one
    example per line, or the recipe selects a range of lines.
    """
    rows = reader.parallel_files()
    if rows is None:
        return None
    parts: list[FileParts] = []
    total = 0
    try:
        if any(is_compressed(path) for row in rows for path in row):
            return None
        for row in rows:
            cut, lines = _cut_together(row)
            parts += cut
            total += lines
    except OSError as error:
        problem = error.strerror or error
        raise NotFoundError(f"{error.filename}: cannot be read: {problem}") from error
    return parts, total


def _cut_together(paths: Sequence[Path]) -> tuple[list[FileParts], int]:
    """Cut parallel files at the same lines. Return the parts and the number of lines."""
    source, lines = cut_by_size(paths[0])
    columns, counts = [source], [lines]
    for path in paths[1:]:
        parts, count = cut_by_lines(path, [part.first_line for part in source])
        columns.append(parts)
        counts.append(count)
    if len({*counts}) > 1:
        raise different_line_counts(paths, counts)
    return list(zip(*columns, strict=True)), lines


def cut_by_size(path: Path) -> tuple[list[FilePart], int]:
    """Cut a file at the first line end after every PART_BYTES bytes.

    Return the parts and the number of lines. A file without lines has no parts.
    """
    starts = [(0, 1)]  # (offset, number) of the first line of each part
    lines = offset = 0
    last = b"\n"
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            position = 0
            while True:
                earliest = max(starts[-1][0] + PART_BYTES - 1 - offset, position)
                end = block.find(b"\n", earliest) + 1
                if not end:
                    break
                lines += block.count(b"\n", position, end)
                starts.append((offset + end, lines + 1))
                position = end
            lines += block.count(b"\n", position)
            offset += len(block)
            last = block[-1:]
    lines += last != b"\n"
    return _parts_between(path, starts, offset), lines


def cut_by_lines(path: Path, first_lines: Sequence[int]) -> tuple[list[FilePart], int]:
    """Cut a file into parts that start at given lines. Return the parts and the number of lines.

    first_lines: line number at which each part starts, counted from 1, in ascending order. The
                 first part starts at line 1.
    """
    starts = [(0, 1)] if first_lines else []
    lines = offset = 0
    last = b"\n"
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            count = block.count(b"\n")
            wanted = first_lines[len(starts) : len(starts) + 1]
            if wanted and wanted[0] - 1 <= lines + count:
                ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1
                for number in first_lines[len(starts) :]:
                    if number - 1 > lines + count:
                        break
                    starts.append((offset + int(ends[number - 2 - lines]), number))
            lines += count
            offset += len(block)
            last = block[-1:]
    lines += last != b"\n"
    return _parts_between(path, starts, offset), lines


def _parts_between(path: Path, starts: Sequence[tuple[int, int]], size: int) -> list[FilePart]:
    stops = [start for start, _ in starts[1:]] + [size]
    return [
        FilePart(path, start, stop, number)
        for (start, number), stop in zip(starts, stops, strict=False)
        if start < stop
    ]
