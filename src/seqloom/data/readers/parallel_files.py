"""Reads parallel files: line n of the source file belongs to line n of the target file."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from seqloom.config.schema.corpora import ParallelConfig
from seqloom.core.errors import DataError, NotFoundError
from seqloom.data.example import Example, InvalidLine
from seqloom.data.readers.text_files import locate, read_lines_or_problems


def read_parallel(
    config: ParallelConfig, folder: str, table: str
) -> Iterator[Example | InvalidLine]:
    """Yield one example per line, or a problem. All files must have the same number of lines.

    Lines before `first_line` and after `last_line` are read but not yielded, so that different
    numbers of lines are always detected.

    table: the corpus' table in the recipe, such as "data.train[1]", for error messages
    """
    names = (config.source, config.target, *config.references)
    paths = []
    missing = []
    for name in names:
        try:
            paths.append(locate(name, folder))
        except NotFoundError as error:
            missing.append(str(error))
    if missing:
        raise NotFoundError("\n".join(missing))
    rows = zip_longest(*(read_lines_or_problems(path) for path in paths))
    number = 0
    for number, row in enumerate(rows, start=1):
        if None in row:
            counts = [number - (line is None) for line in row]
            for rest in rows:
                counts = [n + (line is not None) for n, line in zip(counts, rest, strict=True)]
            raise DataError(_line_count_message(list(map(str, paths)), counts))
        if config.first_line <= number <= (config.last_line or number):
            yield _example(row, f"{paths[0]}:{number}")
    _refuse_lines_past_end(config, number, str(paths[0]), table)


def _example(row: Sequence[str | InvalidLine], where: str) -> Example | InvalidLine:
    """Join the lines of all files into an example. One invalid line makes the example invalid."""
    texts = [line for line in row if isinstance(line, str)]
    for line in row:
        if isinstance(line, InvalidLine):
            return line
    source, target, *references = texts
    return Example(source, target, (target, *references), where)


def _refuse_lines_past_end(config: ParallelConfig, lines: int, path: str, table: str) -> None:
    for name, line in (("first_line", config.first_line), ("last_line", config.last_line)):
        if line is not None and line > max(lines, 1):
            raise DataError(
                f"{path}: has {lines} lines, so {table}.{name} = {line} is past its end; "
                f"set it to {lines} or less"
            )


def _line_count_message(paths: list[str], counts: list[int]) -> str:
    shortest = min(counts)
    longest = paths[counts.index(max(counts))]
    listed = ", ".join(f"{path} has {n} lines" for path, n in zip(paths, counts, strict=True))
    return (
        f"{listed}: line {shortest + 1} of {longest} has no partner; the files must have the same "
        "number of lines. Check for a missing line or a line broken in two."
    )
