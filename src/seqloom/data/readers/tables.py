"""Reads tables of records: Parquet files, and data sets that Hugging Face `datasets` saved."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqloom.config.schema.corpora import (
    ArrowConfig,
    FileNames,
    ParquetConfig,
    RecordsConfig,
    list_file_names,
)
from seqloom.core.errors import DataError, NotFoundError
from seqloom.core.extras import import_optional
from seqloom.data.readers.reader import Reader, Records
from seqloom.data.readers.records import convert_record
from seqloom.data.readers.text_files import locate_all

if TYPE_CHECKING:
    from pyarrow import RecordBatch

BATCH_ROWS = 1_000
"""Maximum number of rows that are converted to Python values at once."""
TRANSLATION = "translation"
"""Column whose records have one text per language."""


class ParquetReader(Reader[ParquetConfig]):
    """Reads Parquet files. At most one row group is in memory."""

    def read(self) -> Records:
        for path in self.paths():
            yield from _read_file(
                path, _parquet_batches(path, self.corpus), self.corpus, self.table
            )


class ArrowReader(Reader[ArrowConfig]):
    """Reads saved data sets. At most one record batch is in memory."""

    files = ()  # a path can be a folder, which `arrow_paths` checks

    def paths(self) -> list[Path]:
        return arrow_paths(self.corpus.path, self.folder)

    def existing_paths(self) -> list[Path]:
        with suppress(NotFoundError, DataError):
            return self.paths()
        return []

    def read(self) -> Records:
        for path in self.paths():
            yield from _read_file(path, _arrow_batches(path, self.corpus), self.corpus, self.table)


def arrow_paths(names: FileNames, folder: str) -> list[Path]:
    """Return the Arrow files that a setting names, in order.

    If the setting names a folder, return the data files that `save_to_disk` of Hugging Face
    `datasets` wrote to this folder.
    """
    files: list[str] = []
    for name in list_file_names(names):
        dataset = Path(folder).expanduser() / Path(name).expanduser()
        if dataset.is_dir():
            files += [str(Path(name) / file) for file in _dataset_files(dataset)]
        else:
            files.append(name)
    return locate_all(tuple(files), folder)


def _dataset_files(dataset: Path) -> list[str]:
    """Return the names of the data files in a folder that `save_to_disk` wrote. The file state.json
    in this folder lists them."""
    splits = _read_json(dataset / "dataset_dict.json")
    if splits is not None:
        names = splits.get("splits") if isinstance(splits, dict) else None
        listed = ", ".join(map(str, names)) if isinstance(names, list) and names else "none"
        raise DataError(
            f"{dataset}: has several splits ({listed}); give the folder of one of them, for example "
            f'path = "{dataset / "train"}"'
        )
    state = _read_json(dataset / "state.json")
    if state is None:
        raise NotFoundError(
            f"{dataset}: is a folder without state.json, so `save_to_disk` did not write it; give "
            "the folder of a saved data set, or a pattern of Arrow files"
        )
    try:
        files = [str(file["filename"]) for file in state["_data_files"]]
        has_selection = state.get("_indices_data_files") or state.get("_indices_files")
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{dataset / 'state.json'}: does not list the files of the data set; save it again with "
            "save_to_disk"
        ) from error
    if has_selection:
        raise DataError(
            f"{dataset}: stores a selection of its rows as indices; save it again after "
            "dataset.flatten_indices()"
        )
    return files


def _read_json(path: Path) -> Any:
    """Return the content of a JSON file, or None if there is no such file."""
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: is not valid JSON; save the data set again") from error


def _read_file(
    path: Path, batches: "Iterator[RecordBatch]", config: RecordsConfig, table: str
) -> Records:
    number = 0
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            for record in batch.slice(start, BATCH_ROWS).to_pylist():
                number += 1
                yield convert_record(record, f"{path}:row {number}", config, table)


def _parquet_batches(path: Path, config: ParquetConfig) -> "Iterator[RecordBatch]":
    parquet = import_optional("pyarrow.parquet", "parquet", 'kind = "parquet"')
    try:
        with parquet.ParquetFile(path) as file:
            columns = _needed_columns(config, file.schema_arrow.names)
            yield from file.iter_batches(BATCH_ROWS, columns=columns)
    except (ValueError, OSError) as error:  # pyarrow raises subclasses of both for damaged files
        raise _damaged(path, "a Parquet file", error) from error


def _arrow_batches(path: Path, config: ArrowConfig) -> "Iterator[RecordBatch]":
    ipc = import_optional("pyarrow.ipc", "parquet", 'kind = "arrow"')
    try:
        with path.open("rb") as file, ipc.open_stream(file) as batches:
            columns = _needed_columns(config, batches.schema.names)
            for batch in batches:
                yield batch if columns is None else batch.select(columns)
    except (ValueError, OSError) as error:
        raise _damaged(path, "an Arrow stream written by save_to_disk", error) from error


def _needed_columns(config: RecordsConfig, names: list[str]) -> list[str] | None:
    """Return the names of the columns to read; None to read all columns.

    These are the columns of the source and the target, and the column "translation", which can hold
    both texts. If the file has no column "translation" and lacks the source or the target, the
    result is None. The error message about the missing column then lists all columns.
    """
    keys = [key for key in (config.source, config.source_fallback, config.target) if key]
    if TRANSLATION not in names and not {config.source, config.target} <= {*names}:
        return None
    return [name for name in names if name in keys or name == TRANSLATION]


def _damaged(path: Path, kind: str, error: Exception) -> DataError:
    return DataError(
        f"{path}: is damaged or not {kind} ({str(error).splitlines()[0] if str(error) else error!r}); "
        "copy or download the file again"
    )
