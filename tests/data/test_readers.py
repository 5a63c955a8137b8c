"""Every kind of corpus has a reader, and a reader outside seqloom can do all that they can."""

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.corpora import CorpusConfig, ReaderExtensionConfig, SplitDataConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.section import kinds_of
from seqloom.config.schema.task import TaskConfig
from seqloom.core.batch import Padded
from seqloom.core.errors import ConfigError, NotFoundError
from seqloom.data import (
    BatchStream,
    CorpusOrigin,
    Example,
    InvalidLine,
    LineReader,
    PaddedLayout,
    Reader,
    read_split,
)
from seqloom.data.modalities.registry import MODALITIES
from seqloom.data.preparation.file_parts import cut_corpus
from seqloom.data.preparation.request import fingerprint
from seqloom.data.readers.splits import readers_of, split_files
from seqloom.data.readers.text_files import FilePart, read_lines_or_problems
from seqloom.tasks.build import learn_task

CORPORA = [
    section
    for section in kinds_of(SplitDataConfig)
    if issubclass(section, CorpusConfig) and not issubclass(section, ReaderExtensionConfig)
]
TASKS = [section for section in kinds_of(TaskConfig) if issubclass(section, TaskConfig)]
WITHOUT_CLASS = {"none", "series"}
"""Modalities without sources, or whose sources and targets are both numbers."""


@pytest.mark.parametrize("corpus", CORPORA, ids=lambda corpus: corpus.__name__)
def test_a_corpus_has_a_reader_and_a_modality(corpus: type[CorpusConfig]) -> None:
    reader = corpus.part_class()
    assert inspect.isclass(reader)
    assert issubclass(reader, Reader)
    assert corpus.modality in {*MODALITIES, *WITHOUT_CLASS}


def test_the_files_of_modalities_are_different() -> None:
    """The type of a stored corpus is recognised by its files."""
    assert len({modality.file for modality in MODALITIES.values()}) == len(MODALITIES)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.__name__)
def test_a_task_can_read_a_corpus_and_says_what_it_does(task: type[TaskConfig]) -> None:
    assert inspect.isclass(task.part_class())
    assert set(task.modalities) <= {corpus.modality for corpus in CORPORA}
    assert task.action
    assert task.command.startswith(("{program} ", "echo "))


class PipeReader(LineReader[Any]):
    """Reads lines of the form source|target.

    path: the file.
    separator: what is between source and target.
    """

    def __init__(self, origin: CorpusOrigin[Any], path: str, separator: str = "|") -> None:
        super().__init__(origin)
        self.path = path
        self.separator = separator

    def read_part(self, parts: Sequence[FilePart]) -> Any:
        (part,) = parts
        for number, line in enumerate(read_lines_or_problems(part), start=part.first_line):
            if isinstance(line, InvalidLine):
                yield line
            else:
                source, _, target = line.partition(self.separator)
                yield Example(source, target, (target,), f"{part.path}:{number}")


class PulseReader(Reader[Any]):
    """Yields sequences of frames."""

    modality: ClassVar[str] = "frames"
    has_vectors: ClassVar[bool] = True

    def read(self) -> Any:
        for number in range(1, 9):
            frames = " ".join(f"{number},{position}" for position in range(number))
            yield Example(frames, "up", ("up",), f"pulse:{number}")


def data_with(folder: Path, **settings: Any) -> DataConfig:
    corpus = {"kind": f"{__name__}:PipeReader", "path": "a.txt", **settings}
    return DataConfig.model_validate({"folder": str(folder), "train": corpus, "dev": corpus})


def test_a_reader_outside_seqloom_states_its_files_identity_and_parts(tmp_path: Path) -> None:
    data = data_with(tmp_path)
    with pytest.raises(NotFoundError, match="there is no such file"):
        next(read_split(data, "train"))
    (tmp_path / "a.txt").write_text("a|b\nc|d\n")
    (tmp_path / "b.txt").write_text("a|b\nc|d\n")
    (tmp_path / "c.txt").write_text("a|b\nc|e\n")
    assert split_files(data, "train") == [tmp_path / "a.txt"]
    digests = [fingerprint(data_with(tmp_path, path=f"{name}.txt"), "train") for name in "abc"]
    assert digests[0] == digests[1] != digests[2], "the content counts, not the name"
    assert fingerprint(data_with(tmp_path, separator=" "), "train") != digests[0]
    [reader] = readers_of(data, "train")
    cut = cut_corpus(reader)
    assert cut is not None
    [part], lines = cut
    assert lines == 2
    assert list(reader.read_part(part)) == list(read_split(data, "train"))
    assert [example.target for example in read_split(data, "train")] == ["b", "d"]


def test_a_reader_outside_seqloom_can_have_other_sources_than_text() -> None:
    corpus = {"kind": f"{__name__}:PulseReader"}
    tables: dict[str, Any] = {
        "task": {"kind": "labels"},
        "data": {"train": corpus, "dev": corpus},
        "text": {"target_tokenizer": {"kind": "whitespace"}},
        "model": {
            "encoder": {"kind": "recurrent"},
            "decoder": {"kind": "labels", "pooling": "last"},
        },
        "training": {"steps": 1},
    }
    config = load_recipe(tables).config
    task = learn_task(config)
    dataset = task.corpus(config, "train", lambda progress: None)
    stream = BatchStream(dataset, PaddedLayout(budget=100), seed=1)
    batch = next(stream)
    stream.close()
    assert isinstance(batch.source, Padded)
    assert batch.source.values.shape[-1] == 2
    with pytest.raises(ConfigError, match="which has frames as sources"):
        load_recipe({**tables, "task": {"kind": "translation"}})


def test_equal_sources_of_one_kind_are_required(tmp_path: Path) -> None:
    corpus = {"kind": f"{__name__}:PulseReader"}
    text = {"kind": "tsv", "path": "a.tsv"}
    changed = load_recipe("gesture-label").config.model_dump(mode="json")
    changed["data"] |= {"train": [corpus, text], "dev": corpus, "test": []}
    with pytest.raises(ConfigError, match="'tsv' has text as sources, and the first corpus"):
        load_recipe(changed)


def test_origin_is_not_a_setting() -> None:
    config = data_with(Path())
    assert config.train[0].model_dump() == {
        "kind": f"{__name__}:PipeReader",
        "path": "a.txt",
        "separator": "|",
        "tag": None,
        "name": None,
    }
