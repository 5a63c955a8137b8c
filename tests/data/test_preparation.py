"""Preparing corpora in shards: any number of processes, interruptions, and damage."""

import errno
import gzip
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.schema.corpora import (
    HoldOutConfig,
    JsonlConfig,
    LinesConfig,
    ParallelConfig,
    TsvConfig,
)
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.text import CharactersConfig
from seqloom.core.errors import DataError, NotFoundError, SeqloomError, StorageError
from seqloom.data.batching import layout
from seqloom.data.batching.packing import row_length
from seqloom.data.corpus.corpus import Corpus, build_corpus
from seqloom.data.corpus.dataset import ReadingProgress
from seqloom.data.corpus.filters import INVALID_LINE
from seqloom.data.corpus.token_store import TokenWriter
from seqloom.data.modalities.text import TextModality
from seqloom.data.preparation import build, file_parts, jobs
from seqloom.data.preparation.request import CorpusRequest
from seqloom.data.preparation.workers import write_shards
from seqloom.data.readers.text_files import FilePart, read_lines_or_problems
from seqloom.text.build import train_tokenizer

LETTERS = train_tokenizer(CharactersConfig(), ["abcdefghij 0123456789"], (), False)
PAIRS = 400


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_parts, "PART_BYTES", 1_000)
    monkeypatch.setattr(jobs, "SHARD_RECORDS", 90)


def pair_lines(first: int = 0) -> list[str]:
    return [f"a {n} b\tb {n % 7} c" for n in range(first, first + PAIRS)]


@pytest.fixture
def data(tmp_path: Path) -> DataConfig:
    """A text file, which is cut into parts, and a compressed one, which is not. Dev is held out."""
    (tmp_path / "a.tsv").write_text("\n".join(pair_lines()) + "\n")
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress("\n".join(pair_lines(PAIRS)).encode()))
    corpora = (TsvConfig(path="a.tsv", name="a"), TsvConfig(path="b.tsv.gz", name="b"))
    return DataConfig(folder=str(tmp_path), train=corpora, dev=HoldOutConfig(fraction=0.1))


@pytest.fixture
def request_(data: DataConfig) -> CorpusRequest:
    return CorpusRequest(data, "train", TextModality(LETTERS), LETTERS)


def contents(corpus: Corpus) -> dict[str, bytes]:
    """The files of a corpus, except the modification times."""
    paths = (path for path in sorted(corpus.folder.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(corpus.folder)): path.read_bytes()
        for path in paths
        if path.name != "stamps.json"
    }


def texts(corpus: Corpus) -> list[tuple[str, str]]:
    return [
        (LETTERS.decode(corpus.source(i).tolist()), LETTERS.decode(corpus.target(i).tolist()))
        for i in range(len(corpus))
    ]


def inodes(corpus: Corpus) -> dict[str, int]:
    return {path.name: path.stat().st_ino for path in build.shard_folders(corpus.folder)}


def use_new_cache(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))


def test_any_number_of_processes_writes_the_same_bytes(
    request_: CorpusRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "MIN_PARALLEL_BYTES", 0)
    results = []
    for workers in (1, 2, 4):
        use_new_cache(monkeypatch, tmp_path / str(workers))
        with_workers = request_.data.model_copy(update={"workers": workers})
        corpus = build_corpus(replace(request_, data=with_workers))
        results.append((corpus.digest, contents(corpus)))
    assert results[0] == results[1] == results[2]
    assert len(inodes(corpus)) > 8


def test_error_in_a_worker_process_reaches_the_caller(
    data: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "MIN_PARALLEL_BYTES", 0)
    monkeypatch.setattr(file_parts, "PART_BYTES", 10**6)
    (tmp_path / "a.tsv").write_bytes(b"a\tb\n" + b"x" * 2_000_000 + b"\na\tb\n" * 200_000)
    both = data.model_copy(update={"train": (TsvConfig(path="a.tsv"),), "workers": 2})
    with pytest.raises(DataError, match=r"a\.tsv:2: the line is longer than 1,000,000 bytes"):
        build_corpus(CorpusRequest(both, "train", TextModality(LETTERS), LETTERS))


def test_shards_contain_all_examples_in_order(request_: CorpusRequest) -> None:
    train = build_corpus(request_)
    dev = build_corpus(replace(request_, split="dev"))
    assert (train.report.read, dev.report.read) == (len(train), len(dev))
    assert len(train) + len(dev) == 2 * PAIRS
    expected = [tuple(line.split("\t")) for line in (*pair_lines(), *pair_lines(PAIRS))]
    held_out = set(texts(dev))
    assert texts(train) == [pair for pair in expected if pair not in held_out]
    assert [name for name, _ in train.report.parts] == ["a", "b"]


def test_batches_are_read_across_shards(request_: CorpusRequest) -> None:
    corpus = build_corpus(request_)
    indices = np.array([len(corpus) - 1, 0, 333, 5, 333])
    rows = corpus.targets.take(indices)
    assert rows.lengths.tolist() == corpus.target_lengths[indices].tolist()
    expected = [corpus.target(index).tolist() for index in indices.tolist()]
    assert rows.ids.tolist() == [id_ for row in expected for id_ in row]


def test_held_out_examples_come_from_the_training_shards(
    request_: CorpusRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dev_request = replace(request_, split="dev")
    read_from_files = contents(build_corpus(dev_request))
    use_new_cache(monkeypatch, tmp_path / "other")
    build_corpus(request_)
    monkeypatch.setattr(jobs, "read_share", None)
    assert contents(build_corpus(dev_request)) == read_from_files


@given(
    lines=st.lists(st.text("ab\n", max_size=12), max_size=30),
    size=st.integers(1, 40),
    ends_with_newline=st.booleans(),
)
def test_parts_of_files_contain_every_line_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], size: int, ends_with_newline: bool
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    source = "\n".join(lines) + ("\n" if ends_with_newline else "")
    (folder / "a").write_text(source)
    (folder / "b").write_text(source.replace("a", "ccc"))
    with patch.object(file_parts, "PART_BYTES", size), patch.object(file_parts, "BLOCK_BYTES", 16):
        parts, count = file_parts.cut_by_size(folder / "a")
        partners, partner_count = file_parts.cut_by_lines(
            folder / "b", [part.first_line for part in parts]
        )
    whole = list(read_lines_or_problems(FilePart(folder / "a")))
    assert count == partner_count == len(whole)
    assert [line for part in parts for line in read_lines_or_problems(part)] == whole
    for part, partner in zip(parts, partners, strict=True):
        assert part.first_line == partner.first_line
        assert list(read_lines_or_problems(partner)) == [
            str(line).replace("a", "ccc") for line in read_lines_or_problems(part)
        ]
    assert all(part.stop is not None and part.stop - part.start >= size for part in parts[:-1])


@pytest.mark.parametrize(
    "corpus",
    [
        JsonlConfig(path="a.jsonl", source="s", target="t"),
        LinesConfig(path="a.lines"),
        ParallelConfig(source="a.source", target="a.target"),
        ParallelConfig(source="a.source", target="a.target", first_line=3, last_line=390),
    ],
)
def test_formats_have_the_same_examples_in_shards_as_in_one_part(
    tmp_path: Path,
    corpus: JsonlConfig | LinesConfig | ParallelConfig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pairs = [line.split("\t") for line in pair_lines()]
    (tmp_path / "a.jsonl").write_text(
        "".join(f'{{"s": "{source}", "t": "{target}"}}\n' for source, target in pairs)
    )
    (tmp_path / "a.lines").write_text("".join(f"{source}\n" for source, _ in pairs))
    (tmp_path / "a.source").write_text("".join(f"{source}\n" for source, _ in pairs))
    (tmp_path / "a.target").write_text("".join(f"{target}\n" for _, target in pairs))
    config = DataConfig(folder=str(tmp_path), train=corpus, dev=corpus)
    source = None if isinstance(corpus, LinesConfig) else TextModality(LETTERS)
    request = CorpusRequest(config, "train", source, LETTERS)
    sharded = build_corpus(request)
    assert len(inodes(sharded)) > 1
    monkeypatch.setattr(file_parts, "PART_BYTES", 2**20)
    monkeypatch.setattr(jobs, "SHARD_RECORDS", 2**20)
    use_new_cache(monkeypatch, tmp_path / "other")
    whole = build_corpus(request)
    assert len(inodes(whole)) == 1
    assert sharded.report == whole.report
    assert sharded.target_lengths.tolist() == whole.target_lengths.tolist()
    indices = np.arange(len(whole))
    assert sharded.targets.take(indices).ids.tolist() == whole.targets.take(indices).ids.tolist()


def test_error_for_parallel_files_of_different_lengths_counts_all_lines(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n" * 1_000)
    (tmp_path / "b").write_text("b\n" * 700)
    files = ParallelConfig(source="a", target="b")
    request = CorpusRequest(
        DataConfig(folder=str(tmp_path), train=files, dev=files),
        "train",
        TextModality(LETTERS),
        LETTERS,
    )
    with pytest.raises(DataError, match=r"a has 1000 lines, .*b has 700 lines: line 701 of"):
        build_corpus(request)


def test_invalid_lines_of_all_shards_are_listed_with_their_line_numbers(
    data: DataConfig, tmp_path: Path
) -> None:
    lines = pair_lines()
    for number in (3, 200, 399):
        lines[number - 1] = "no tab"
    (tmp_path / "a.tsv").write_text("\n".join(lines))
    data = data.model_copy(update={"train": (TsvConfig(path="a.tsv"),)})
    request = CorpusRequest(data, "train", TextModality(LETTERS), LETTERS)
    with pytest.raises(DataError, match=r"(?s)3 lines cannot.*:3: .*:200: .*:399: "):
        build_corpus(request)
    skipping = replace(request, data=data.model_copy(update={"invalid_lines": "skip"}))
    with patch.object(build, "write_shards", wraps=write_shards) as write:
        report = build_corpus(skipping).report
        assert list(write.call_args.args[2]) == [], "the shards of the failed build are reused"
    assert report.dropped[INVALID_LINE] == 3
    assert report.read == report.kept + 3
    with pytest.raises(DataError, match="3 lines cannot be used"):
        build_corpus(request)  # although the corpus without these lines is cached now


def _build_until(request: CorpusRequest, stop: Callable[[], None]) -> None:
    def progress(reading: ReadingProgress) -> None:
        if reading.examples > PAIRS:
            stop()

    build_corpus(request, progress)


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _interrupt() -> None:
    raise KeyboardInterrupt


@pytest.fixture
def uninterrupted(
    request_: CorpusRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolated_cache: Path
) -> dict[str, bytes]:
    """The files of the corpus, built without an interruption in another cache."""
    with monkeypatch.context() as context:
        use_new_cache(context, tmp_path / "uninterrupted")
        return contents(build_corpus(request_))


@pytest.mark.parametrize("way", ["kill", "interrupt"])
def test_interrupted_build_continues_with_its_finished_shards(
    request_: CorpusRequest, uninterrupted: dict[str, bytes], isolated_cache: Path, way: str
) -> None:
    if way == "kill":
        context = multiprocessing.get_context("fork")
        process = context.Process(target=_build_until, args=(request_, _kill))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    else:
        with pytest.raises(KeyboardInterrupt):
            _build_until(request_, _interrupt)
    (unfinished,) = (isolated_cache / "prepared").glob(".build-*")
    before = {path.name: path.stat().st_ino for path in build.shard_folders(unfinished)}
    corpus = build_corpus(request_)
    assert contents(corpus) == uninterrupted
    assert 3 < len(before) < len(inodes(corpus))
    assert before.items() <= inodes(corpus).items(), "finished shards are not written again"
    assert not list(corpus.folder.glob(".*")), "no temporary files are left"


def test_full_disk_is_reported_and_finished_shards_are_kept(
    request_: CorpusRequest, uninterrupted: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    append, calls = TokenWriter.append, []

    def append_until_full(self: TokenWriter, ids: list[list[int]]) -> None:
        calls.append(ids)
        if len(calls) > 8:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(self, ids)

    with monkeypatch.context() as context:
        context.setattr(TokenWriter, "append", append_until_full)
        with pytest.raises(StorageError, match=r"No space left .*kept.*set XDG_CACHE_HOME"):
            build_corpus(request_)
    with patch.object(build, "write_shards", wraps=write_shards) as write:
        corpus = build_corpus(request_)
    assert write.call_count == 1
    assert contents(corpus) == uninterrupted


def test_changed_shard_is_built_again_and_the_others_are_kept(
    request_: CorpusRequest, uninterrupted: dict[str, bytes]
) -> None:
    corpus = build_corpus(request_)
    before = inodes(corpus)
    path = corpus.folder / "00002" / "target.ids"
    changed = bytearray(path.read_bytes())
    changed[0] ^= 1
    path.write_bytes(changed)
    again, notes = build_with_notes(request_)
    assert contents(again) == uninterrupted
    assert {name for name, inode in inodes(again).items() if inode != before[name]} == {"00002"}
    (note,) = notes
    assert "They are not used and are built again from the unchanged data" in note
    assert note.endswith(f"\n  {path}"), "only the changed file is listed"


def build_with_notes(request: CorpusRequest) -> tuple[Corpus, list[str]]:
    notes: list[str] = []
    corpus = build_corpus(request, lambda reading: notes.append(reading.note))
    return corpus, [note for note in notes if note]


@pytest.mark.parametrize("damage", ["truncated", "changed"])
def test_damaged_shard_of_an_unfinished_build_is_not_used(
    request_: CorpusRequest, uninterrupted: dict[str, bytes], isolated_cache: Path, damage: str
) -> None:
    with pytest.raises(KeyboardInterrupt):
        _build_until(request_, _interrupt)
    (path,) = (isolated_cache / "prepared").glob(".build-*/00001/source.ids")
    content = path.read_bytes()
    path.write_bytes(content[:-2] if damage == "truncated" else content[::-1])
    corpus, notes = build_with_notes(request_)
    assert contents(corpus) == uninterrupted
    assert len(notes) == 1
    assert str(path) in notes[0]


def test_damaged_shard_is_noticed_although_the_manifest_is_missing(
    request_: CorpusRequest, uninterrupted: dict[str, bytes]
) -> None:
    corpus = build_corpus(request_)
    (corpus.folder / "manifest.json").unlink()
    path = corpus.folder / "00001" / "target.ids"
    path.write_bytes(path.read_bytes()[::-1])
    again, notes = build_with_notes(request_)
    assert contents(again) == uninterrupted
    assert "manifest.json" in notes[0]
    assert "00001/target.ids" in notes[1]


def test_intact_corpus_is_used_without_a_note(request_: CorpusRequest) -> None:
    assert build_with_notes(request_)[1] == []
    assert build_with_notes(request_)[1] == []


def test_copied_corpus_is_checked_once_and_used(
    request_: CorpusRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = build_corpus(request_)
    os.utime(corpus.folder / "00001" / "source.ids", (1, 1))
    monkeypatch.setattr("seqloom.data.corpus.corpus.write_corpus", None)
    build_corpus(request_)
    monkeypatch.setattr("seqloom.data.corpus.disk_cache.sha256", None)
    build_corpus(request_)


def test_process_that_waits_for_another_one_reports_it(
    request_: CorpusRequest, isolated_cache: Path
) -> None:
    lock = FileLock(isolated_cache / "prepared" / f".lock-{request_.digest()}")
    (isolated_cache / "prepared").mkdir(parents=True)
    waits = threading.Event()
    results: list[Corpus] = []

    def progress(reading: ReadingProgress) -> None:
        if reading.waits:
            waits.set()

    thread = threading.Thread(target=lambda: results.append(build_corpus(request_, progress)))
    with lock:
        thread.start()
        assert waits.wait(20)
        assert not results
    thread.join()
    assert results


def test_shards_of_another_size_are_not_reused(
    request_: CorpusRequest, uninterrupted: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as context:
        context.setattr(file_parts, "PART_BYTES", 700)
        with pytest.raises(KeyboardInterrupt):
            _build_until(request_, _interrupt)
    assert contents(build_corpus(request_)) == uninterrupted


def test_error_for_an_unreadable_data_file_names_the_file(
    request_: CorpusRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(file_parts, "is_compressed", refuse)
    with pytest.raises(NotFoundError, match=r"a\.tsv: cannot be read: Permission denied"):
        build_corpus(request_)


BUILD_IN_PROCESSES = """
import sys
from seqloom.config.schema.corpora import LinesConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.text import CharactersConfig
from seqloom.data.corpus.corpus import build_corpus
from seqloom.data.preparation import file_parts
from seqloom.data.preparation.request import CorpusRequest
from seqloom.text.build import train_tokenizer

file_parts.PART_BYTES = 2**22
letters = train_tokenizer(CharactersConfig(), ["abcdefghij"], (), False)
file = LinesConfig(path="many")
data = DataConfig(folder=sys.argv[1], train=file, dev=file, workers=2)
print(len(build_corpus(CorpusRequest(data, "train", None, letters)).folder.name))
"""


def _is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads /proc")
def test_worker_processes_end_when_their_parent_is_killed(
    tmp_path: Path, isolated_cache: Path
) -> None:
    (tmp_path / "many").write_text("abcdefghij\n" * 2_000_000)
    command = [sys.executable, "-c", BUILD_IN_PROCESSES, str(tmp_path)]
    process = subprocess.Popen(command)
    deadline = time.monotonic() + 120
    temporary: list[Path] = []
    while len(temporary) < 2 and time.monotonic() < deadline:
        temporary = list((isolated_cache / "prepared").glob(".build-*/.tmp-*"))
    process.kill()
    process.wait()
    workers = [int(path.name.rpartition("-")[2].partition("@")[0]) for path in temporary]
    assert len({*workers}) == 2
    while any(map(_is_running, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(_is_running, workers))
    result = subprocess.run(command, check=True, capture_output=True)
    assert int(result.stdout) == 64


def test_worker_that_was_killed_is_reported(
    request_: CorpusRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "MIN_PARALLEL_BYTES", 0)
    monkeypatch.setattr("sys.executable", "/bin/false")
    data = request_.data.model_copy(update={"workers": 2})
    with pytest.raises(SeqloomError, match=r"worker process .* ended with code 1.*data\.workers=1"):
        build_corpus(replace(request_, data=data))


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), min_size=1, max_size=50),
    st.integers(1, 20),
)
def test_lengths_are_examined_in_chunks_with_the_same_result(
    lengths: list[tuple[int, int]], chunk: int
) -> None:
    sources, targets = np.array(lengths).T
    percentile = np.percentile(layout.example_sizes(sources, targets), 95)
    with patch.object(layout, "CHUNK_SIZE", chunk):
        assert row_length(sources, targets) == max(64, 1 << int(np.ceil(np.log2(2 * percentile))))
        budget = 150
        too_long = int((np.maximum(sources, targets) + 1 > budget).sum())
        if too_long:
            with pytest.raises(DataError, match=f"^{too_long} of {len(lengths)} examples"):
                layout.refuse_too_long(sources, targets, budget)
        else:
            layout.refuse_too_long(sources, targets, budget)
