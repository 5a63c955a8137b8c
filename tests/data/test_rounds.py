"""Large corpora: epochs in rounds, ids in two bytes, files that are read once."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.schema.corpora import LinesConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.text import CharactersConfig
from seqloom.core.storage import sha256
from seqloom.data import corpus as corpora
from seqloom.data import digests
from seqloom.data.corpus import CorpusRequest, build_corpus
from seqloom.data.rounds import BLOCK, ROUND, examples_of_round, rounds_in_epoch
from seqloom.text.build import train_tokenizer

LETTERS = train_tokenizer(CharactersConfig(), ["abcdefghij"], (), False)


@given(examples=st.integers(1, 40 * BLOCK), rounds=st.integers(1, 5), epoch=st.integers(0, 3))
def test_the_rounds_of_an_epoch_share_its_examples(examples: int, rounds: int, epoch: int) -> None:
    numbers = range(epoch * rounds, (epoch + 1) * rounds)
    parts = [examples_of_round(examples, rounds, 7, number) for number in numbers]
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(examples))


def test_small_corpora_have_one_round_and_large_ones_rounds_of_like_size() -> None:
    assert rounds_in_epoch(1) == rounds_in_epoch(ROUND) == 1
    rounds = rounds_in_epoch(10**7)
    assert rounds > 1
    sizes = [len(examples_of_round(10**7, rounds, 0, number)) for number in range(rounds)]
    assert max(sizes) <= ROUND + BLOCK
    assert max(sizes) - min(sizes) <= 2 * BLOCK


def test_who_shares_a_round_changes_with_epoch_and_seed() -> None:
    first = examples_of_round(64 * BLOCK, 4, 0, 0)
    assert not np.array_equal(first, examples_of_round(64 * BLOCK, 4, 0, 4))
    assert not np.array_equal(first, examples_of_round(64 * BLOCK, 4, 1, 0))
    # Blocks from all over the corpus, not a stretch of it.
    assert first.max() - first.min() > 32 * BLOCK


@pytest.mark.parametrize(("narrow", "bytes_each"), [(2**16, 2), (3, 4)])
def test_ids_take_two_bytes_where_the_vocabulary_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, narrow: int, bytes_each: int
) -> None:
    monkeypatch.setattr(corpora, "NARROW", narrow)
    (tmp_path / "a").write_text("abc\njihg\n")
    data = DataConfig(folder=str(tmp_path), train=LinesConfig(path="a"), dev=LinesConfig(path="a"))
    corpus = build_corpus(CorpusRequest(data, "train", None, LETTERS))
    assert (corpus.folder / "target.ids").stat().st_size == 7 * bytes_each
    assert LETTERS.decode(corpus.target(1).tolist()) == "jihg"
    corpus.release()
    assert LETTERS.decode(corpus.target(0).tolist()) == "abc"


def _aged(path: Path, text: str, seconds: int) -> Path:
    """A file whose last change is so long ago, as far as it can be told."""
    path.write_text(text)
    os.utime(path, (path.stat().st_mtime - seconds,) * 2)
    return path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were read to the end; every file is large, and settles at once."""
    seen: list[Path] = []

    def read(path: Path) -> str:
        seen.append(path)
        return sha256(path)

    monkeypatch.setattr(digests, "sha256", read)
    monkeypatch.setattr(digests, "LARGE", 0)
    monkeypatch.setattr(digests, "SETTLED", -1.0)
    return seen


def test_a_large_file_is_read_once(tmp_path: Path, reads: list[Path]) -> None:
    path = _aged(tmp_path / "a", "one", 10)
    assert digests.file_digest(path) == digests.file_digest(path)
    assert len(reads) == 1


def test_a_changed_file_is_read_again_even_if_its_date_was_set_back(
    tmp_path: Path, reads: list[Path]
) -> None:
    path = _aged(tmp_path / "a", "one", 10)
    before, date = digests.file_digest(path), path.stat().st_mtime_ns
    path.write_text("two")
    os.utime(path, ns=(date, date))
    assert digests.file_digest(path) != before


def test_a_file_that_has_just_changed_is_not_remembered(
    tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "SETTLED", 2.0)
    path = tmp_path / "a"
    path.write_text("one")
    digests.file_digest(path)
    digests.file_digest(path)
    assert len(reads) == 2


def test_a_damaged_memory_is_not_believed(
    tmp_path: Path, reads: list[Path], own_cache: Path
) -> None:
    path = _aged(tmp_path / "a", "one", 10)
    before = digests.file_digest(path)
    (memory,) = (own_cache / "digests").iterdir()
    memory.write_text("")
    assert digests.file_digest(path) == before
