"""Reads sources and references from files that a user names instead of a split of the data."""

from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path

from seqloom.config.schema.data import DataConfig
from seqloom.core.errors import ConfigError, DataError, NotFoundError
from seqloom.data.example import Example, Split
from seqloom.data.readers.splits import merge_references, read_split
from seqloom.data.readers.text_files import read_lines

PORTION = 1_000
"""Maximum number of lines that `read_aligned_lines` reads at a time."""


def check_files(files: Sequence[Path]) -> None:
    """Raise a NotFoundError that lists every path that is not a file."""
    missing = [path for path in files if not path.is_file()]
    if missing:
        raise NotFoundError(describe_missing(missing))


def describe_missing(missing: Sequence[Path]) -> str:
    return "\n".join(
        f"{path}: {'is a folder, not a file' if path.is_dir() else 'no such file'}"
        for path in missing
    )


def read_aligned_lines(files: Sequence[Path]) -> Iterator[list[tuple[str, ...]]]:
    """Read several files at once. Yield lists of up to PORTION tuples.

    Each tuple contains the lines with the same line number, one from every file.
    Raises DataError if the files do not have the same number of lines.
    """
    rows = zip_longest(*(read_lines(file) for file in files))
    line_number = 0
    while portion := list(islice(rows, PORTION)):
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


def read_example_files(
    files: Sequence[Path] | None, data: DataConfig, split: Split
) -> list[Example]:
    """Read examples from files, or from a split of a run's data if there are no files.

    Two files: the first has one source per line, the second one reference per line. One .tsv file:
    each row has a source and one or more references. Any other single file has one source per line
    and no references.
    """
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

    source, *references = line.split("\t")
    if not references:
        raise DataError(f"{location}: only one column. Separate source and reference by a tab.")
    return Example(source, references[0], tuple(references), location)
