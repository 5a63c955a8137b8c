"""Sentences to look at: of files, of the command line, or of a run's own data."""

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from seqloom.cli.work.lines import check_files
from seqloom.config.schema.data import DataConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.data.example import Example, Split
from seqloom.data.files import read_lines
from seqloom.data.splits import merge_references, read_split


def examples_of(files: Sequence[Path], data: DataConfig, split: Split) -> list[Example]:
    """Of two files the lines that stand side by side; of one .tsv file its columns, the source
    first and then references; of another file its lines, without references; else the split."""
    check_files(files)
    match files:
        case []:
            pairs = list(read_split(data, split))
            return merge_references(pairs) if data.merge_references else pairs
        case [path] if path.suffix.lower() == ".tsv":
            return [_columns(path, place, line) for place, line in enumerate(read_lines(path), 1)]
        case [path]:
            lines = enumerate(read_lines(path), start=1)
            return [Example(line, "", (), f"{path}:{place}") for place, line in lines]
        case [source, target]:
            return _side_by_side(source, target)
        case _:
            raise ConfigError(f"{len(files)} files; give one, or two: sources and references")


def _columns(path: Path, place: int, line: str) -> Example:
    source, *references = line.split("\t")
    if not references:
        raise DataError(
            f"{path}:{place}: there is one column only; separate source and reference by a tab"
        )
    return Example(source, references[0], tuple(references), f"{path}:{place}")


def _side_by_side(source: Path, target: Path) -> list[Example]:
    found = []
    both = zip_longest(read_lines(source), read_lines(target))
    for place, (ours, theirs) in enumerate(both, start=1):
        if ours is None or theirs is None:
            short = source if ours is None else target
            raise DataError(
                f"{short}: ends after line {place - 1}, but the other file goes on; "
                "line n of one must belong to line n of the other"
            )
        found.append(Example(ours, theirs, (theirs,), f"{source}:{place}"))
    return found


def without_blank(examples: Sequence[Example]) -> list[Example]:
    """Those with something to read."""
    return [example for example in examples if example.source.strip()]
