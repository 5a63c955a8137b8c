"""Reads cells of a CSV file whose first line names the columns, and parses numbers."""

import csv
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqloom.core.errors import DataError
from seqloom.data.readers.text_files import read_lines

Numbers = NDArray[np.float64]


def read_column_names(path: Path) -> list[str]:
    """Return the names of the columns of a CSV file, which its first line contains.

    A name may be in double quotation marks. Raise a DataError if there is no name.
    """
    _, names = next(_read_rows(path), (1, []))
    if not any(names):
        raise DataError(f"{path}:1: the file has no columns; name the columns in its first line")
    return [name.strip() for name in names]


def _read_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each row, including the row of column names."""
    lines = (f"{line}\n" for line in read_lines(path))
    reader = csv.reader(lines, skipinitialspace=True)
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise DataError(
            f"{path}:{reader.line_num}: the quotes are not valid CSV ({error}); close each quote"
        ) from error


def read_cells(path: Path, columns: Sequence[str]) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Read some columns of a CSV file as text.

    Return the names of these columns and, for each row, its line number and its cells.
    """
    names = read_column_names(path)
    if missing := [name for name in columns if name not in names]:
        raise DataError(
            f"{path}:1: there is no column {', '.join(missing)}; the columns are "
            f"{', '.join(names)}. Correct the names in the file or in the recipe"
        )
    indices = [names.index(name) for name in columns]
    rows = []
    for line, row in islice(_read_rows(path), 1, None):
        if not row:
            continue
        if len(row) < len(names):
            raise DataError(
                f"{path}:{line}: the row has {len(row)} cells, but the first line names "
                f"{len(names)} columns; add the missing cells"
            )
        rows.append((line, [row[index] for index in indices]))
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
