"""Reads a corpus with a reader that is defined outside seqloom."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from seqloom.config.schema.corpora import ReaderExtensionConfig
from seqloom.core.errors import DataError, NotFoundError
from seqloom.data.example import Example, InvalidLine, Split


def read_extension(
    corpus: ReaderExtensionConfig, folder: str, split: Split, table: str
) -> Iterator[Example | InvalidLine]:
    """Yield the examples and the invalid lines of a reader that is defined outside seqloom.

    The reader may yield (source, target) pairs, which are converted to examples, and `Example` and
    `InvalidLine` objects. Raise a DataError if the reader yields an object of another type.

    table: the corpus' table in the recipe, such as "data.train[1]", for error messages
    """
    try:
        records: Iterable[Any] = corpus.build_part(folder=Path(folder).expanduser(), split=split)
        for number, record in enumerate(records, start=1):
            yield _as_example(record, f"{table}: example {number} of '{corpus.kind}'")
    except OSError as error:
        path = f"{error.filename}: " if error.filename else ""
        raise NotFoundError(
            f"{table}: the reader '{corpus.kind}' cannot read its data: {path}"
            f"{error.strerror or error}"
        ) from error


def _as_example(record: Any, where: str) -> Example | InvalidLine:
    match record:
        case Example() | InvalidLine():
            return record
        case (str(source), str(target)):
            return Example(source, target, (target,), where)
        case _:
            raise DataError(
                f"{where}: is {record!r:.80}; a reader must yield (source, target) pairs of "
                "strings, seqloom.data.Example or seqloom.data.InvalidLine"
            )
