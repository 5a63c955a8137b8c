"""One file of tab-separated columns."""

from collections.abc import Iterator

from seqloom.config.data import TsvConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example
from seqloom.data.files import locate, read_lines


def read_tsv(config: TsvConfig, folder: str) -> Iterator[Example]:
    """Columns are counted from 0; others than those asked for are ignored."""
    path = locate(config.path, folder)
    wanted = (config.source_column, config.target_column, *config.reference_columns)
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) <= max(wanted):
            raise DataError(
                f"{path}:{number}: there is no column {max(wanted)} (counted from 0), only "
                f"{len(columns)} in {_shown(line)}; separate columns by tabs, or set "
                "source_column and target_column"
            )
        source, target, *further = (columns[column] for column in wanted)
        yield Example(source, target, (target, *further), f"{path}:{number}")


def _shown(line: str) -> str:
    return repr(line if len(line) <= 60 else line[:60] + "…")
