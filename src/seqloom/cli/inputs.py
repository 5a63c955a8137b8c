"""Input texts: from files, from stdin, or from the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from seqloom.core.errors import ConfigError, DataError, NotFoundError
from seqloom.jobs.batch_translation import portions

if TYPE_CHECKING:
    from seqloom.config.schema.data import DataConfig
    from seqloom.data.example import Example, Split

STDIN = Path("-")


def check_text_files(files: Sequence[Path] | None) -> None:
    """Raise a NotFoundError that lists every path that is neither a file nor "-", for stdin."""
    missing = [path for path in files or () if path != STDIN and not path.is_file()]
    if any(" " in str(path) for path in missing):
        raise NotFoundError(
            f"{_describe_missing(missing)}\n"
            "To pass text, write it to standard input: echo '…' | seqloom …"
        )
    check_files(missing)


def read_portions(files: Sequence[Path] | None, device_type: str = "cpu") -> Iterator[list[str]]:
    """Return an iterator over portions of the lines of the files: lists of lines.

    The path "-" stands for stdin. If there are no files, reads stdin. If stdin is read and is a
    terminal, each list has one line, so that every line is processed as soon as it is entered.
    Raises NotFoundError if a file is missing, before anything is read.

    device_type: type of the device that decodes a portion. A GPU gets larger portions
    """
    check_text_files(files)
    paths = files or [STDIN]
    lines = (line for path in paths for line in _read_lines(path))
    is_terminal = STDIN in paths and sys.stdin.isatty()
    size = 1 if is_terminal else portions.portion_lines(device_type)
    return iter(lambda: list(islice(lines, size)), [])


def skip_lines(portions: Iterator[list[str]], count: int) -> Iterator[list[str]]:
    """Skip the first `count` lines and return an iterator over the remaining portions.

    portions: iterator over lists of lines
    count:    number of lines to skip. Only whole lists can be skipped, so this must be the total
              number of lines of the first few lists
    """
    while count > 0:
        count -= len(next(portions))
    return portions


def _read_lines(path: Path) -> Iterator[str]:
    from seqloom.data.readers.text_files import decode_lines, read_lines

    return decode_lines(sys.stdin.buffer, "stdin") if path == STDIN else read_lines(path)


def check_files(files: Sequence[Path]) -> None:
    """Raise a NotFoundError that lists every path that is not a file."""
    missing = [path for path in files if not path.is_file()]
    if missing:
        raise NotFoundError(_describe_missing(missing))


def _describe_missing(missing: Sequence[Path]) -> str:
    return "\n".join(
        f"{path}: {'is a folder, not a file' if path.is_dir() else 'no such file'}"
        for path in missing
    )


def check_texts(texts: Sequence[str]) -> Sequence[str]:
    """Return the texts unchanged. Raise DataError if one of them is not valid UTF-8."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise DataError(f"text {text!a}: is not valid UTF-8; convert it to UTF-8") from error
    return texts


def read_aligned_lines(files: Sequence[Path]) -> Iterator[list[tuple[str, ...]]]:
    """Read several files at once. Yield lists of up to CPU_PORTION tuples.

    Each tuple contains the lines with the same line number, one from every file.
    Raises DataError if the files do not have the same number of lines.
    """
    from seqloom.data.readers.text_files import read_lines

    rows = zip_longest(*(read_lines(file) for file in files))
    line_number = 0
    while portion := list(islice(rows, portions.CPU_PORTION)):
        for row in portion:
            line_number += 1
            if None in row:
                raise _unequal_lengths(files[row.index(None)], line_number - 1)
        yield portion


def _unequal_lengths(shorter: Path, lines: int) -> DataError:
    return DataError(
        f"{shorter}: ends after line {lines}, but the other file has more lines. Line n of one "
        "file must correspond to line n of the other."
    )


def read_examples(files: Sequence[Path] | None, data: DataConfig, split: Split) -> list[Example]:
    """Read examples from files, or from a split of a run's data if there are no files.

    Two files: the first has one source per line, the second one reference per line. One .tsv file:
    each row has a source and one or more references. Any other single file has one source per line
    and no references.
    """
    from seqloom.data.example import Example
    from seqloom.data.readers.splits import merge_references, read_split
    from seqloom.data.readers.text_files import read_lines

    check_files(files or ())
    match files or ():
        case []:
            examples = list(read_split(data, split))
            return merge_references(examples) if data.merge_references else examples
        case [path] if path.suffix.lower() == ".tsv":
            return [_parse_row(line, f"{path}:{n}") for n, line in enumerate(read_lines(path), 1)]
        case [path]:
            return [
                Example(line, "", (), f"{path}:{n}") for n, line in enumerate(read_lines(path), 1)
            ]
        case [source_path, target_path]:
            rows = (
                row for portion in read_aligned_lines([source_path, target_path]) for row in portion
            )
            return [
                Example(source, target, (target,), f"{source_path}:{n}")
                for n, (source, target) in enumerate(rows, 1)
            ]
        case paths:
            raise ConfigError(
                f"{len(paths)} files given. Give one file, or two: sources and references."
            )


def _parse_row(line: str, location: str) -> Example:
    from seqloom.data.example import Example

    source, *references = line.split("\t")
    if not references:
        raise DataError(f"{location}: only one column. Separate source and reference by a tab.")
    return Example(source, references[0], tuple(references), location)
