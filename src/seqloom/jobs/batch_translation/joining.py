"""Joins the translated blocks of an input file into one output file.

The output file has the same format and compression as the input file.
"""

import gzip
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from seqloom.core.extras import import_optional
from seqloom.data.readers.text_files import read_lines
from seqloom.jobs.batch_translation.input_files import InputFile, read_record_batches


def join_blocks(file: InputFile, blocks: Sequence[Path], path: Path) -> None:
    """Write the complete output of an input file to `path`.

    For plain text, the blocks contain the output lines. For JSON Lines and Parquet, the blocks
    contain one JSON object per record of the input. The output consists of the input records, with
    the fields of these objects added.

    blocks: the files of the translated blocks, in order
    """
    if file.kind == "parquet":
        _join_parquet(file, blocks, path)
        return
    with _open_output(path, file.path.suffix.lower()) as output:
        if file.kind == "jsonl":
            for line, fields in zip(read_lines(file.path), _block_lines(blocks), strict=True):
                # The record is not parsed and written again: this keeps its numbers and its order.
                output.write(f"{line.rstrip().removesuffix('}')}, {fields[1:]}\n".encode())
        else:
            for block in blocks:
                with block.open("rb") as lines:
                    shutil.copyfileobj(lines, output)


def _join_parquet(file: InputFile, blocks: Sequence[Path], path: Path) -> None:
    arrow = import_optional("pyarrow", "parquet", str(file.path))
    parquet = import_optional("pyarrow.parquet", "parquet", str(file.path))
    types = {
        file.output_field: arrow.string(),
        "score": arrow.float64(),
        "alignment": arrow.string(),
    }
    added = _block_lines(blocks)
    first = json.loads(next(added, "{}"))
    names = list(first) or [file.output_field]
    records = iter([first]) if first else iter(())
    rows = (record for part in (records, map(json.loads, added)) for record in part)
    with parquet.ParquetFile(file.path) as table:
        schema = table.schema_arrow
    for name in names:
        schema = schema.append(arrow.field(name, types[name]))
    with parquet.ParquetWriter(path, schema) as writer:
        for batch in read_record_batches(file):
            fields = list(islice(rows, batch.num_rows))
            columns = [
                arrow.array([record[name] for record in fields], types[name]) for name in names
            ]
            writer.write_batch(
                arrow.RecordBatch.from_arrays([*batch.columns, *columns], schema=schema)
            )


def _block_lines(blocks: Sequence[Path]) -> Iterator[str]:
    for block in blocks:
        yield from read_lines(block)


@contextmanager
def _open_output(path: Path, suffix: str) -> Iterator[BinaryIO]:
    """Open a file for writing.

    suffix: suffix of the input file. If it is .gz or .zst, the output is compressed in this format
    """
    with path.open("wb") as file:
        if suffix == ".gz":
            # Without a time and a name, two processes write the same bytes.
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                yield cast(BinaryIO, packed)
        elif suffix == ".zst":
            zstandard: Any = import_optional("zstandard", "zstd", f"{path}: writing zstd files")
            with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as packed:
                yield cast(BinaryIO, packed)
        else:
            yield file
