"""Input files of a batch translation: plain text, JSON Lines and Parquet, in blocks of lines."""

import glob
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from seqloom.core.errors import ConfigError, DataError, NotFoundError
from seqloom.core.extras import import_optional
from seqloom.data.example import InvalidLine
from seqloom.data.readers.text_files import (
    FilePart,
    count_file_lines,
    read_lines,
    read_lines_or_problems,
    shorten,
)

if TYPE_CHECKING:
    from pyarrow import RecordBatch

FileKind = Literal["text", "jsonl", "parquet"]

ROWS = 1_000
"""Maximum number of rows of a Parquet file that are read at once."""
COMPRESSION_SUFFIXES = (".gz", ".zst")
MAX_LISTED = 10
"""Maximum number of invalid lines in one error message."""


@dataclass(frozen=True)
class InputFile:
    """A file to translate.

    field:        the field or column with the texts. None for plain text
    output_field: the field or column that receives the translations
    size, time:   size in bytes and modification time in seconds. They show if the file has changed
    """

    path: Path
    kind: FileKind
    field: str | None
    output_field: str
    size: int
    time: int

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def is_unchanged(self) -> bool:
        status = self.path.stat()
        return (status.st_size, int(status.st_mtime)) == (self.size, self.time)


@dataclass(frozen=True)
class Block:
    """Some consecutive lines of a file.

    file:  the index of the file among the input files
    index: the index of the block in its file
    first: the number of lines before the block
    """

    file: int
    index: int
    first: int
    texts: Sequence[str]


def find_input_files(
    patterns: Sequence[str], field: str | None, output_field: str
) -> list[InputFile]:
    """Return the files that match the patterns. The files of each pattern are sorted by name.

    Raises a ConfigError
    - if two files have the same name, because an output has the same name as its input file,
    - if `field` is None and some files have fields (JSON Lines) or columns (Parquet),
    - if `field` is given and all files are plain text, or
    - if `field` equals `output_field`.
    """
    paths = _expand(patterns)
    problems = [
        f"{name}: {count} input files have this name, and so would their outputs. Rename all but one, "
        "or translate them with separate commands."
        for name, count in Counter(path.name for path in paths).items()
        if count > 1
    ]
    kinds = [file_kind(path) for path in paths]
    if field is None:
        problems += [
            f"{path}: is a file with fields. Name the field with the texts: --field NAME."
            for path, kind in zip(paths, kinds, strict=True)
            if kind != "text"
        ]
    elif all(kind == "text" for kind in kinds):
        problems.append(
            f"--field {field}: all input files are plain text, which has no fields. Remove --field, "
            "or give .jsonl or .parquet files."
        )
    if field == output_field:
        problems.append(
            f"--output-field {output_field}: is the field with the texts. Choose another name."
        )
    if problems:
        raise ConfigError("\n".join(problems))
    files = []
    for path, kind in zip(paths, kinds, strict=True):
        status = path.stat()
        text_field = None if kind == "text" else field
        files.append(
            InputFile(path, kind, text_field, output_field, status.st_size, int(status.st_mtime))
        )
    return files


def _expand(patterns: Sequence[str]) -> list[Path]:
    """Return the files that match the patterns. ** matches any number of nested folders.

    Raises a NotFoundError that lists every missing file and every pattern without a file.
    """
    paths: list[Path] = []
    problems: list[str] = []
    for pattern in patterns:
        literal = Path(pattern).expanduser()
        if literal.is_file():
            paths.append(literal)
        elif glob.has_magic(pattern):
            names = sorted(glob.glob(str(literal), recursive=True))
            found = [path for path in map(Path, names) if path.is_file()]
            paths += found
            if not found:
                problems.append(f"{pattern}: no file matches the pattern")
        else:
            problem = (
                "is a folder; add a pattern, such as /*.txt" if literal.is_dir() else "no such file"
            )
            problems.append(f"{pattern}: {problem}")
    if problems:
        raise NotFoundError("\n".join(problems))
    return list(dict.fromkeys(paths))


def file_kind(path: Path) -> FileKind:
    """Return "jsonl", "parquet" or "text", according to the suffix. Ignores a final .gz or .zst."""
    suffix = path.suffix.lower()
    if suffix in COMPRESSION_SUFFIXES:
        suffix = path.with_suffix("").suffix.lower()
    if suffix in (".jsonl", ".ndjson"):
        return "jsonl"
    return "parquet" if suffix == ".parquet" else "text"


def block_sizes(file: InputFile, block_lines: int) -> list[int]:
    """Return the number of lines in each block of a file. Counts the lines without parsing them.

    block_lines: number of lines in a block; only the last one can be shorter
    """
    if file.kind == "parquet":
        parquet = import_optional("pyarrow.parquet", "parquet", str(file.path))
        lines = int(parquet.read_metadata(file.path).num_rows)
    else:
        lines = count_file_lines(file.path)
    return [min(block_lines, lines - first) for first in range(0, lines, block_lines)]


def read_blocks(file: InputFile, number: int, block_lines: int) -> Iterator[Block]:
    """Yield the blocks of a file.

    number:      the index of the file among the input files
    block_lines: number of lines in a block; only the last one can be shorter

    Raises a DataError that lists the invalid lines of a block.
    """
    items = _read_texts(file)
    index = first = 0
    while block := list(islice(items, block_lines)):
        problems = [str(text) for text in block if isinstance(text, InvalidLine)]
        if problems:
            more = len(problems) - MAX_LISTED
            listed = problems[:MAX_LISTED] + ([f"… and {more} more"] if more > 0 else [])
            raise DataError("\n".join(listed))
        yield Block(number, index, first, [text for text in block if isinstance(text, str)])
        index += 1
        first += len(block)


def _read_texts(file: InputFile) -> Iterator[str | InvalidLine]:
    if file.kind == "text":
        return read_lines(file.path)
    return _jsonl_texts(file) if file.kind == "jsonl" else _parquet_texts(file)


def _jsonl_texts(file: InputFile) -> Iterator[str | InvalidLine]:
    for number, line in enumerate(read_lines_or_problems(FilePart(file.path)), start=1):
        if isinstance(line, InvalidLine):
            yield line
            continue
        where = f"{file.path}:{number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield InvalidLine(where, f"is not JSON: {error}")
            continue
        yield _text(record, file, where)


def _text(record: Any, file: InputFile, where: str) -> str | InvalidLine:
    """Return the text in the field `file.field` of a JSON object.

    Returns an `InvalidLine`, which describes the problem, if there is no valid text.

    record: the parsed line
    where:  file and line number, for the error message
    """
    if not isinstance(record, dict):
        return InvalidLine(where, f"must be a JSON object, {{…}}, not {shorten(repr(record))}")
    if file.output_field in record:
        return InvalidLine(
            where,
            f"has a field '{file.output_field}' already",
            "choose another name for the translations with --output-field",
        )
    if file.field not in record:
        names = ", ".join(map(repr, record)) or "no field"
        return InvalidLine(where, f"has no field '{file.field}', only {names}", "set --field")
    text = record[file.field]
    if not isinstance(text, str):
        return InvalidLine(where, f"'{file.field}' is not a string but {shorten(repr(text))}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return InvalidLine(
            where,
            f"character {error.start + 1} of '{file.field}' is half of a surrogate pair, which is not "
            "valid Unicode",
            "write the character itself",
        )
    return text


def _parquet_texts(file: InputFile) -> Iterator[str | InvalidLine]:
    number = 0
    for batch in read_record_batches(file):
        column = batch.column(file.field).to_pylist()
        for text in column:
            number += 1
            if isinstance(text, str):
                yield text
            else:
                where = f"{file.path}:row {number}"
                yield InvalidLine(
                    where, f"'{file.field}' is not a string but {shorten(repr(text))}"
                )


def read_record_batches(file: InputFile) -> "Iterator[RecordBatch]":
    """Yield the rows of a Parquet file in batches of at most ROWS rows."""
    parquet = import_optional("pyarrow.parquet", "parquet", str(file.path))
    try:
        with parquet.ParquetFile(file.path) as table:
            names = table.schema_arrow.names
            if file.field not in names:
                raise DataError(
                    f"{file.path}: has no column '{file.field}', only {', '.join(map(repr, names))}; "
                    "name the column with the texts: --field NAME"
                )
            if file.output_field in names:
                raise DataError(
                    f"{file.path}: has a column '{file.output_field}' already; choose another name "
                    "for the translations with --output-field"
                )
            yield from table.iter_batches(ROWS)
    except (ValueError, OSError) as error:  # pyarrow raises subclasses of both for damaged files
        raise DataError(
            f"{file.path}: is damaged or not a Parquet file ({error}); copy or download the file again"
        ) from error
