"""One file of comma-separated columns with names."""

import csv
from collections.abc import Iterator
from pathlib import Path

from seqloom.config.schema.corpora import CsvConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example
from seqloom.data.files import locate, read_lines


def read_csv(config: CsvConfig, folder: str, table: str) -> Iterator[Example]:
    """The first line names the columns; others than those asked for are ignored.

    A field in quotes may hold commas, line ends and doubled quotes. `table` is what the recipe
    calls this corpus, for errors.
    """
    path = locate(config.path, folder)
    records = _records(path)
    where, names = next(records, (f"{path}:1", []))
    wanted = _columns(config, names, where, table)
    for where, fields in records:
        if len(fields) != len(names):
            raise DataError(f"{where}: {_unequal(fields, names)}")
        source, target, *further = (fields[column] for column in wanted)
        yield Example(source, target, (target, *further), where)


def _records(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Where each record begins, and its fields."""
    reader = csv.reader((f"{line}\n" for line in read_lines(path)), strict=True)
    where = f"{path}:1"
    try:
        for fields in reader:
            yield where, fields
            where = f"{path}:{reader.line_num + 1}"
    except csv.Error as error:
        raise DataError(
            f"{where}: the quotes are not in order ({error}); a field with a comma, a quote or a "
            "line end in it stands in quotes, and a quote inside is written twice"
        ) from error


def _columns(config: CsvConfig, names: list[str], where: str, table: str) -> list[int]:
    """The place of each column that is wanted."""
    settings = [("source", config.source), ("target", config.target)]
    settings += [("references", name) for name in config.references]
    shown = ", ".join(map(repr, names)) or "an empty line"
    problems = []
    for setting, name in settings:
        count = names.count(name)
        if count == 0:
            problems.append(
                f"{where}: there is no column '{name}', only {shown}; say with {table}.{setting} "
                "which one to read, or give the file a first line that names its columns"
            )
        elif count > 1:
            problems.append(f"{where}: there are {count} columns '{name}'; rename all but one")
    if problems:
        raise DataError("\n".join(dict.fromkeys(problems)))
    return [names.index(name) for _, name in settings]


def _unequal(fields: list[str], names: list[str]) -> str:
    if not fields:
        return "is a blank line; remove it"
    count = "one field" if len(fields) == 1 else f"{len(fields)} fields"
    return (
        f"there are {len(names)} columns, but {count} here, beginning with {_shown(fields[0])}; "
        "put a field with a comma in it into quotes"
    )


def _shown(field: str) -> str:
    return repr(field if len(field) <= 60 else field[:60] + "…")
