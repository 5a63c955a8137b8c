"""Reads tab-separated and comma-separated files."""

import csv
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path

from seqloom.config.schema.corpora import CsvConfig, TsvConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example, InvalidLine
from seqloom.data.readers.reader import LineReader, Reader, Records
from seqloom.data.readers.text_files import (
    FilePart,
    read_lines,
    read_lines_or_problems,
    shorten,
)


class CsvReader(Reader[CsvConfig]):
    """Reads comma-separated files. Columns that the recipe does not name are ignored.

    A quoted field may contain commas, line breaks and doubled quotes.
    """

    def read(self) -> Records:
        for path in self.paths():
            yield from self._read_file(path)

    def _read_file(self, path: Path) -> Records:
        records = _records(path)
        where, names = next(records, (f"{path}:1", []))
        columns = _column_indices(self.corpus, names, where, self.table)
        for where, fields in records:
            if len(fields) != len(names):
                yield _wrong_field_count(where, fields, names)
                continue
            source, target, *references = (fields[column] for column in columns)
            yield Example(source, target, (target, *references), where)


def _records(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield (file:line, fields) for each record. The line is the first line of the record."""
    reader = csv.reader((f"{line}\n" for line in read_lines(path)), strict=True)
    where = f"{path}:1"
    try:
        for fields in reader:
            yield where, fields
            where = f"{path}:{reader.line_num + 1}"
    except csv.Error as error:
        raise DataError(
            f"{where}: the quotes are not valid CSV ({error}). If a field contains a comma, a "
            "quote or a line break, enclose the field in quotes and double each quote inside it"
        ) from error


def _column_indices(config: CsvConfig, names: list[str], where: str, table: str) -> list[int]:
    """Return the indices of the source, target and reference columns."""
    settings = [("source", config.source), ("target", config.target)]
    settings += [("references", name) for name in config.references]
    listed = ", ".join(map(repr, names)) or "an empty line"
    problems = []
    for setting, name in settings:
        count = names.count(name)
        if count == 0:
            problems.append(
                f"{where}: there is no column '{name}', only {listed}; set {table}.{setting} to "
                "the column to read, or add a first line that names the columns"
            )
        elif count > 1:
            problems.append(f"{where}: there are {count} columns '{name}'; rename all but one")
    if problems:
        raise DataError("\n".join(dict.fromkeys(problems)))
    return [names.index(name) for _, name in settings]


def _wrong_field_count(where: str, fields: list[str], names: list[str]) -> InvalidLine:
    if not fields:
        return InvalidLine(where, "the line is blank", "remove blank lines")
    count = "one field" if len(fields) == 1 else f"{len(fields)} fields"
    return InvalidLine(
        where,
        f"there are {len(names)} columns, but this record has {count}, starting with "
        f"{shorten(fields[0])!r}",
        "put fields that contain a comma in quotes",
    )


_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")


class TsvReader(LineReader[TsvConfig]):
    """Reads tab-separated files. Columns that the recipe does not select are ignored.

    The recipe selects columns by index, counted from 0.
    """

    def read_part(self, parts: Sequence[FilePart]) -> Records:
        (part,) = parts
        path, corpus = str(part.path), self.corpus
        selected = (corpus.source_column, corpus.target_column, *corpus.reference_columns)
        last = max(selected)
        select = itemgetter(*selected)
        for number, line in enumerate(read_lines_or_problems(part), start=part.first_line):
            if isinstance(line, InvalidLine):
                yield line
                continue
            columns = line.split("\t")
            if len(columns) <= last:
                yield _missing_column(f"{path}:{number}", columns, last, self.table)
                continue
            texts = select(columns)
            yield Example(texts[0], texts[1], texts[1:], f"{path}:{number}")


def _missing_column(where: str, columns: list[str], missing: int, table: str) -> InvalidLine:
    line = "\t".join(columns)
    ordinal = _ORDINALS[missing] if missing < len(_ORDINALS) else f"{missing + 1}th"
    if not line.strip():
        return InvalidLine(
            where, f"the line is blank and has no {ordinal} column", "remove blank lines"
        )
    count = "only one column" if len(columns) == 1 else f"only {len(columns)} columns"
    return InvalidLine(
        where,
        f"there is no {ordinal} column, {count} in {shorten(line)!r}",
        f"separate columns by tabs, or set {table}.source_column and {table}.target_column, where "
        "0 is the first",
    )
