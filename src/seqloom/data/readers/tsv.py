"""Reads TSV files: tab-separated columns, chosen by number."""

from collections.abc import Iterator

from seqloom.config.schema.corpora import TsvConfig
from seqloom.core.errors import DataError
from seqloom.data.example import Example
from seqloom.data.readers.files import locate, read_lines, shorten

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")


def read_tsv(config: TsvConfig, folder: str, table: str) -> Iterator[Example]:
    """Yield one example per line. Columns count from 0; those that the recipe does not name are
    ignored.

    table: the corpus' table in the recipe, such as "data.train[1]", for error messages
    """
    path = locate(config.path, folder)
    selected = (config.source_column, config.target_column, *config.reference_columns)
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) <= max(selected):
            message = _missing_column_message(line, columns, max(selected), table)
            raise DataError(f"{path}:{number}: {message}")
        source, target, *references = (columns[column] for column in selected)
        yield Example(source, target, (target, *references), f"{path}:{number}")


def _missing_column_message(line: str, columns: list[str], missing: int, table: str) -> str:
    ordinal = _ORDINALS[missing] if missing < len(_ORDINALS) else f"{missing + 1}th"
    if not line.strip():
        return f"is a blank line, which has no {ordinal} column; remove it"
    count = "only one column" if len(columns) == 1 else f"only {len(columns)} columns"
    return (
        f"there is no {ordinal} column, {count} in {shorten(line)!r}; separate columns by tabs, or "
        f"set {table}.source_column and {table}.target_column, where 0 is the first"
    )
