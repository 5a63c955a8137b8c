"""Two files, line by line."""

from collections.abc import Iterator
from itertools import zip_longest

from seqloom.config.schema.corpora import ParallelConfig
from seqloom.core.errors import DataError, NotFoundError
from seqloom.data.example import Example
from seqloom.data.files import locate, read_lines


def read_parallel(config: ParallelConfig, folder: str, table: str) -> Iterator[Example]:
    """Line n of one file with line n of the others. All must have the same number of lines.

    Where only some lines are wanted the others are read too, so that files of unequal length are
    found out all the same. `table` is what the recipe calls this corpus, for errors.
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
    rows = zip_longest(*(read_lines(path) for path in paths))
    number = 0
    for number, row in enumerate(rows, start=1):
        if None in row:
            counts = [number - (line is None) for line in row]
            for rest in rows:
                counts = [n + (line is not None) for n, line in zip(counts, rest, strict=True)]
            raise DataError(_unequal(list(map(str, paths)), counts))
        source, target, *further = row
        if config.first_line <= number <= (config.last_line or number):
            yield Example(source, target, (target, *further), f"{paths[0]}:{number}")
    _refuse_beyond(config, number, str(paths[0]), table)


def _refuse_beyond(config: ParallelConfig, lines: int, path: str, table: str) -> None:
    for name, wanted in (("first_line", config.first_line), ("last_line", config.last_line)):
        if wanted is not None and wanted > max(lines, 1):
            raise DataError(
                f"{path}: has {lines} lines, and {table}.{name} = {wanted} is behind the last of "
                f"them; set it to {lines} or less"
            )


def _unequal(paths: list[str], counts: list[int]) -> str:
    shortest = min(counts)
    longest = paths[counts.index(max(counts))]
    listed = ", ".join(f"{path} has {n} lines" for path, n in zip(paths, counts, strict=True))
    return (
        f"{listed}: line {shortest + 1} of {longest} has no partner; the files must have equally "
        "many lines. Look for a line that is missing or was broken in two."
    )
