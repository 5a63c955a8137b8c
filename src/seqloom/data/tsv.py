"""One file of tab-separated columns."""

from collections.abc import Iterator

from seqloom.config.schema.corpora import TsvConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example
from seqloom.data.files import locate, read_lines

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")


def read_tsv(config: TsvConfig, folder: str, table: str) -> Iterator[Example]:
    """Columns are counted from 0; others than those asked for are ignored.

    `table` is what the recipe calls this corpus, for errors.
    """
    path = locate(config.path, folder)
    wanted = (config.source_column, config.target_column, *config.reference_columns)
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) <= max(wanted):
            raise DataError(f"{path}:{number}: {_too_few(line, columns, max(wanted), table)}")
        source, target, *further = (columns[column] for column in wanted)
        yield Example(source, target, (target, *further), f"{path}:{number}")


def _too_few(line: str, columns: list[str], wanted: int, table: str) -> str:
    ordinal = _ORDINALS[wanted] if wanted < len(_ORDINALS) else f"{wanted + 1}th"
    if not line.strip():
        return f"is a blank line, which has no {ordinal} column; remove it"
    count = "only one column" if len(columns) == 1 else f"only {len(columns)} columns"
    return (
        f"there is no {ordinal} column, {count} in {_shown(line)}; separate columns by tabs, or "
        f"set {table}.source_column and {table}.target_column, where 0 is the first"
    )


def _shown(line: str) -> str:
    return repr(line if len(line) <= 60 else line[:60] + "…")
