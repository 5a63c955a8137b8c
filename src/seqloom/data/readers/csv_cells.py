"""Reads cells of a CSV file whose first line names the columns, and parses numbers."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqloom.core.errors import DataError
from seqloom.data.readers.text_files import read_lines

Numbers = NDArray[np.float64]


def read_cells(path: Path, columns: Sequence[str]) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Read some columns of a CSV file as text.

    Return the names of these columns and, for each row, its line number and its cells.
    """
    reader = csv.reader(read_lines(path))
    names = [name.strip() for name in next(reader, [])]
    if missing := [name for name in columns if name not in names]:
        raise DataError(
            f"{path}:1: there is no column {', '.join(missing)}; the columns are "
            f"{', '.join(names) or 'none'}"
        )
    indices = [names.index(name) for name in columns]
    rows = []
    for row in reader:
        if not row:
            continue
        if len(row) < len(names):
            raise DataError(
                f"{path}:{reader.line_num}: the row has {len(row)} cells, but the first line names "
                f"{len(names)} columns; add the missing cells"
            )
        rows.append((reader.line_num, [row[index] for index in indices]))
    return list(columns), rows


def parse_number(cell: str, path: Path, line: int, name: str) -> float:
    """Parse a finite number. If the cell is not a finite number, raise a DataError that names the
    file, line and column."""
    try:
        value = float(cell)
    except ValueError as error:
        raise DataError(
            f"{path}:{line}: column {name}: {cell!r} is not a number; correct the cell"
        ) from error
    if not np.isfinite(value):
        raise DataError(f"{path}:{line}: column {name}: {cell!r} is not finite; correct the cell")
    return value
