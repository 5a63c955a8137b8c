"""Building corpora: contents, filters, caching, and constant memory."""

import multiprocessing
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from seqloom.config.schema.corpora import LinesConfig, TsvConfig
from seqloom.config.schema.data import DataConfig, FilterConfig
from seqloom.config.schema.text import CharactersConfig
from seqloom.core.errors import DataError, StorageError
from seqloom.data.corpus.corpus import Corpus, build_corpus
from seqloom.data.corpus.dataset import ReadingProgress
from seqloom.data.corpus.filters import (
    EMPTY_BOTH,
    EMPTY_SOURCE,
    EMPTY_TARGET,
    LONG_SOURCE,
    LONG_TARGET,
    RATIO,
)
from seqloom.data.modalities.text import TextModality
from seqloom.data.preparation.request import CorpusRequest
from seqloom.data.readers.splits import read_split
from seqloom.text.build import train_tokenizer

LETTERS = train_tokenizer(CharactersConfig(), ["abcdefghij"], (), False)


@pytest.fixture
def data(tmp_path: Path) -> DataConfig:
    (tmp_path / "a.tsv").write_text("abc\tcb\n\ta\nb\t\n\t \naaaaaa\tb\nab\tbbbbbbbbb\nj\tij\n")
    file = TsvConfig(path="a.tsv")
    return DataConfig(folder=str(tmp_path), train=file, dev=file)


@pytest.fixture
def request_(data: DataConfig) -> CorpusRequest:
    return CorpusRequest(data, "train", TextModality(LETTERS), LETTERS)


def texts(corpus: Corpus) -> list[tuple[str, str]]:
    return [
        (LETTERS.decode(corpus.source(i).tolist()), LETTERS.decode(corpus.target(i).tolist()))
        for i in range(len(corpus))
    ]


def test_corpus_contains_the_examples_in_order(request_: CorpusRequest) -> None:
    corpus = build_corpus(request_)
    assert texts(corpus) == [("abc", "cb"), ("aaaaaa", "b"), ("ab", "bbbbbbbbb"), ("j", "ij")]
    assert corpus.source_lengths is not None
    assert corpus.source_lengths.tolist() == [3, 6, 2, 1]
    assert corpus.target_lengths.tolist() == [2, 1, 9, 2]


def test_empty_training_pairs_are_dropped_and_counted_by_side(request_: CorpusRequest) -> None:
    report = build_corpus(request_).report
    assert (report.read, report.kept) == (7, 4)
    assert report.dropped == report.empty == {EMPTY_SOURCE: 1, EMPTY_TARGET: 1, EMPTY_BOTH: 1}


def test_no_example_of_dev_is_dropped(request_: CorpusRequest) -> None:
    filters = FilterConfig(max_source_tokens=1)
    data = request_.data.model_copy(update={"filter": filters})
    corpus = build_corpus(replace(request_, split="dev", data=data))
    assert len(corpus) == corpus.report.read == 7
    assert corpus.report.dropped == {}
    assert sum(corpus.report.empty.values()) == 3


@pytest.mark.parametrize(
    ("filters", "reason", "kept"),
    [
        (FilterConfig(max_source_tokens=5), LONG_SOURCE, 3),
        (FilterConfig(max_target_tokens=8), LONG_TARGET, 3),
        (FilterConfig(max_ratio=5), RATIO, 3),
        (FilterConfig(max_ratio=4.5), RATIO, 3),
        (FilterConfig(max_ratio=4.4), RATIO, 2),
    ],
)
def test_filtered_examples_are_counted_by_reason(
    request_: CorpusRequest, filters: FilterConfig, reason: str, kept: int
) -> None:
    data = request_.data.model_copy(update={"filter": filters})
    report = build_corpus(replace(request_, data=data)).report
    assert report.kept == kept
    assert report.dropped[reason] == 4 - kept
    assert report.read == report.kept + sum(report.dropped.values())


def test_error_if_all_examples_are_dropped_names_the_reasons(request_: CorpusRequest) -> None:
    data = request_.data.model_copy(
        update={"filter": FilterConfig(max_source_tokens=1, max_target_tokens=1)}
    )
    with pytest.raises(DataError, match=r"all 7 examples were dropped .*max_source_tokens: 3"):
        build_corpus(replace(request_, data=data))


def test_language_model_uses_the_targets_of_any_corpus(request_: CorpusRequest) -> None:
    corpus = build_corpus(replace(request_, source=None))
    assert corpus.source_lengths is None
    assert corpus.target_lengths.tolist() == [2, 1, 1, 9, 2]
    assert corpus.report.dropped == {EMPTY_TARGET: 2}


def test_corpus_is_built_once_and_then_loaded_from_the_cache(
    request_: CorpusRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build_corpus(request_)
    monkeypatch.setattr("seqloom.data.corpus.corpus.write_corpus", None)
    again = build_corpus(request_)
    assert again.folder == first.folder
    assert texts(again) == texts(first)
    assert again.report == first.report


def test_digest_depends_on_file_contents_not_on_paths(
    request_: CorpusRequest, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "b.tsv").write_bytes((tmp_path / "a.tsv").read_bytes())
    moved = DataConfig(
        folder=str(elsewhere), train=TsvConfig(path="b.tsv"), dev=TsvConfig(path="b.tsv")
    )
    assert replace(request_, data=moved).digest() == request_.digest()
    with (elsewhere / "b.tsv").open("a") as file:
        file.write("a\tb\n")
    assert replace(request_, data=moved).digest() != request_.digest()


def test_digest_depends_on_everything_that_changes_the_corpus(request_: CorpusRequest) -> None:
    data = request_.data
    other = train_tokenizer(CharactersConfig(), ["abcdefghijk"], (), False)
    swapped = TsvConfig(path="a.tsv", source_column=1, target_column=0)
    variants = [
        request_,
        replace(request_, split="dev"),
        replace(request_, source=None),
        replace(request_, source=TextModality(other)),
        replace(request_, target=other),
        replace(request_, data=data.model_copy(update={"filter": FilterConfig(max_ratio=3)})),
        replace(request_, data=data.model_copy(update={"train": (swapped,)})),
        replace(request_, data=DataConfig(folder=data.folder, train=data.train)),
    ]
    assert len({variant.digest() for variant in variants}) == len(variants)


@pytest.mark.parametrize(
    "name",
    ["00000/target.ids", "00000/source.offsets", "source.lengths", "report.json", "manifest.json"],
)
@pytest.mark.parametrize("damage", ["missing", "truncated"])
def test_damaged_corpus_is_rebuilt(request_: CorpusRequest, name: str, damage: str) -> None:
    before = texts(build_corpus(request_))
    path = build_corpus(request_).folder / name
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1])
    assert texts(build_corpus(request_)) == before
    assert path.is_file()


def test_error_for_unwritable_cache_names_the_variable_to_set(
    request_: CorpusRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(StorageError, match="set XDG_CACHE_HOME to a writable folder"):
        build_corpus(request_)


def _build_many(folder: str) -> int:
    data = DataConfig(folder=folder, train=LinesConfig(path="many"), dev=LinesConfig(path="many"))
    return len(build_corpus(CorpusRequest(data, "train", None, LETTERS)))


def test_several_processes_can_build_the_same_corpus(tmp_path: Path) -> None:
    (tmp_path / "many").write_text("abc\n" * 20_000)
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert pool.map(_build_many, [str(tmp_path)] * 4, chunksize=1) == [20_000] * 4


def test_memory_use_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    peaks = []
    for size in (2_000, 20_000):
        (tmp_path / "many").write_text("abcdefghij" * 10 + "\n")
        with (tmp_path / "many").open("a") as file:
            file.writelines(["abcdefghij" * 10 + "\n"] * size)
        tracemalloc.start()
        _build_many(str(tmp_path))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    additional_bytes = 18_000 * 100 * 4
    assert peaks[1] - peaks[0] < additional_bytes / 3


def test_progress_callback_gets_increasing_counts(tmp_path: Path) -> None:
    (tmp_path / "many").write_text("abc\n" * 2_500)
    data = DataConfig(folder=str(tmp_path), train=LinesConfig(path="many"))
    calls: list[ReadingProgress] = []
    corpus = build_corpus(CorpusRequest(data, "train", None, LETTERS), calls.append)
    counts = [call.examples for call in calls[:-1]]
    assert counts == sorted(counts)
    assert {call.total for call in calls[:-1]} == {2_500}
    assert calls[-1].examples == corpus.report.read == len(list(read_split(data, "train")))
