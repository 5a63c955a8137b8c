"""The interface of all readers of corpora, and the readers that are defined outside seqloom."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from seqloom.config.schema.corpora import (
    CorpusConfig,
    ImportedConfig,
    ReaderExtensionConfig,
    TaggedCorpusConfig,
    list_file_names,
)
from seqloom.core.errors import DataError, NotFoundError
from seqloom.data.corpus.digests import file_digest
from seqloom.data.example import Example, InvalidLine, Split
from seqloom.data.readers.text_files import FilePart, locate_all

TAG_FIELDS = frozenset(TaggedCorpusConfig.model_fields) - {"kind"}
Config = TypeVar("Config", bound=CorpusConfig)
Records = Iterator[Example | InvalidLine]


@dataclass(frozen=True)
class CorpusOrigin(Generic[Config]):
    """A corpus of a recipe, and what its reader has to know.

    corpus: the settings of the corpus
    folder: the setting data.folder
    split:  selects the examples of a bundled or generated corpus
    table:  the corpus' table in the recipe, such as "data.train[1]", for error messages
    """

    corpus: Config
    folder: str
    split: Split
    table: str


class Reader(ABC, Generic[Config]):
    """Reads a corpus in one split. There is a subclass for each kind of corpus.

    A reader outside seqloom can be a subclass, too. Further parameters of its constructor are then
    its settings.
    """

    modality: ClassVar[str] = "text"
    """What the sources are, for a reader outside seqloom. Settings of built-in corpora state it."""
    has_vectors: ClassVar[bool] = False
    """True if the sources are sequences of vectors, for a reader outside seqloom."""

    def __init__(self, origin: CorpusOrigin[Config]) -> None:
        self.corpus = origin.corpus
        self.folder = origin.folder
        self.split = origin.split
        self.table = origin.table

    @abstractmethod
    def read(self) -> Records:
        """Yield an example or an `InvalidLine` for each line or record."""

    @property
    def files(self) -> tuple[str, ...]:
        """Names and patterns of the data files, whose existence is checked before anything is read.

        Default: the setting `path`, if the corpus has it."""
        path = getattr(self.corpus, "path", None)
        return () if path is None else list_file_names(path)

    @property
    def used_files(self) -> Sequence[str] | None:
        """Names and patterns of all files that are read, to compare them with data.expected.

        None if they cannot be determined. Default: `files`"""
        return self.files

    def paths(self) -> list[Path]:
        """Return the paths of the data files, in the order in which they are read."""
        return locate_all(self.files, self.folder)

    def existing_paths(self) -> list[Path]:
        """Return the paths of the data files, without those that are missing."""
        paths = []
        for name in self.files:
            with suppress(NotFoundError, DataError):
                paths += locate_all(name, self.folder)
        return paths

    @property
    def name(self) -> str:
        """Name of the corpus in error messages. Default: its files or its kind."""
        return " and ".join(self.files) or self.corpus.kind

    def settings(self, *excluded: str) -> dict[str, Any]:
        """Return the settings of the corpus without its tag and name, and without `excluded`."""
        settings = self.corpus.model_dump(mode="json")
        left_out = {*TAG_FIELDS, *excluded}
        return {name: value for name, value in settings.items() if name not in left_out}

    def identity(self) -> Any:
        """Return a JSON value that changes if the examples change. It is part of cache keys.

        Default: the settings and the contents of the files, without their names
        """
        return [self.settings("path"), *map(file_digest, self.paths())]

    def parallel_files(self) -> Sequence[Sequence[Path]] | None:
        """Return the files that can be cut into parts at line ends, for several processes.

        Each item lists files whose lines belong together; most readers have one file per item.
        None if the corpus cannot be cut, which is the default. If a subclass returns files, it also
        implements `read_part`.
        """
        return None

    def read_part(self, parts: Sequence[FilePart]) -> Records:
        """Yield the records in a part of the corpus.

        parts: a part of each file of an item of `parallel_files`, all with the same line numbers
        """
        raise NotImplementedError


class LineReader(Reader[Config]):
    """Reads text files in which each line is an example. They are cut into parts."""

    def read(self) -> Records:
        for path in self.paths():
            yield from self.read_part([FilePart(path)])

    def parallel_files(self) -> list[tuple[Path]]:
        return [(path,) for path in self.paths()]


class GeneratedReader(Reader[Config]):
    """Generates examples. They depend on nothing but the settings and the split."""

    version: ClassVar[int] = 1
    """Part of a corpus' cache key. Increase it when a code change gives other examples for the same
    settings."""

    def identity(self) -> list[Any]:
        return [self.corpus.model_dump(mode="json"), self.version, self.split]


class ImportedReader(Reader[ImportedConfig]):
    """Stands for the training data of an imported model, which seqloom does not have."""

    def read(self) -> Records:
        raise self._error(self.table)

    def identity(self) -> Any:
        raise self._error("data.train")

    @staticmethod
    def _error(table: str) -> DataError:
        return DataError(
            f"{table}: the model was imported, and its training data is not known. Give your own "
            f'data, for example: --set \'{table}={{kind="tsv", path="pairs.tsv"}}\''
        )


class ExtensionReader(Reader[ReaderExtensionConfig]):
    """Reads a corpus with a function that is defined outside seqloom.

    The function yields (source, target) pairs, which are converted to examples, or `Example` and
    `InvalidLine` objects. A DataError is raised if it yields an object of another type.
    """

    @property
    def files(self) -> tuple[str, ...]:
        """No files: a setting `path` of the function need not be the name of a file."""
        return ()

    @property
    def used_files(self) -> None:
        return None

    def read(self) -> Records:
        try:
            records: Iterable[Any] = self.corpus.build_part(
                folder=Path(self.folder).expanduser(), split=self.split
            )
            for number, record in enumerate(records, start=1):
                yield _as_example(record, f"{self.table}: example {number} of '{self.corpus.kind}'")
        except OSError as error:
            path = f"{error.filename}: " if error.filename else ""
            raise NotFoundError(
                f"{self.table}: the reader '{self.corpus.kind}' cannot read its data: {path}"
                f"{error.strerror or error}"
            ) from error

    def identity(self) -> str:
        """Return a digest of all examples, because seqloom does not know which files the function
        reads."""
        digest = hashlib.sha256()
        for record in self.read():
            digest.update(repr(record).encode())
        return digest.hexdigest()


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


def build_reader(corpus: CorpusConfig, folder: str, split: Split, table: str) -> Reader[Any]:
    """Build the reader of a corpus. The parameters are those of `CorpusOrigin`."""
    target = corpus.part_class()
    if not (isinstance(target, type) and issubclass(target, Reader)):
        assert isinstance(corpus, ReaderExtensionConfig)
        return ExtensionReader(CorpusOrigin(corpus, folder, split, table))
    reader: Reader[Any] = corpus.build_part(origin=CorpusOrigin(corpus, folder, split, table))
    return reader
