"""Training the tokenizers of a run, and caching them."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import ConfigError
from seqloom.data.corpus.dataset import ReadingProgress
from seqloom.data.corpus.vocabularies import SOURCES, train_tokenizers
from seqloom.data.example import Example
from seqloom.data.readers.splits import read_split
from seqloom.data.recipe import count_pairs
from seqloom.text.vocabulary import UNKNOWN

LANGUAGE_MODEL_DECODER = {
    "kind": "recurrent",
    "initial_state": "zeros",
    "attention": {"kind": "none"},
    "context": [],
}
TRAIN = "eins zwei\tone two\ndrei\tthree\n"


def recipe(folder: Path, **changes: Any) -> RunConfig:
    (folder / "train.tsv").write_text(TRAIN)
    (folder / "dev.tsv").write_text("xyz\tqqq\n")
    settings = {
        "data": {
            "folder": str(folder),
            "train": {"kind": "tsv", "path": "train.tsv"},
            "dev": {"kind": "tsv", "path": "dev.tsv"},
        },
        "text": {"tokenizer": {"kind": "characters"}},
        "model": {"encoder": {"kind": "recurrent"}, "decoder": {"kind": "recurrent"}},
        "training": {"steps": 1, "schedule": {"kind": "constant"}},
    }
    return RunConfig.model_validate({**settings, **changes})


def test_each_tokenizer_is_trained_on_its_side_of_the_training_split(tmp_path: Path) -> None:
    source, target = train_tokenizers(recipe(tmp_path))
    assert source is not None
    assert UNKNOWN not in source.encode("zwei")
    assert UNKNOWN in source.encode("two")
    assert UNKNOWN not in target.encode("two")
    assert UNKNOWN in target.encode("q")


def test_shared_vocabulary_is_one_tokenizer_trained_on_both_sides(tmp_path: Path) -> None:
    text = {"tokenizer": {"kind": "characters"}, "shared": True}
    source, target = train_tokenizers(recipe(tmp_path, text=text))
    assert source is target
    assert UNKNOWN not in target.encode("zwei two three drei")


def test_target_may_have_another_kind_of_tokenizer(tmp_path: Path) -> None:
    text = {"tokenizer": {"kind": "characters"}, "target_tokenizer": {"kind": "words"}}
    source, target = train_tokenizers(recipe(tmp_path, text=text))
    assert source is not None
    assert len(source.encode("eins zwei")) == 9
    assert len(target.encode("one two")) == 2


def test_language_model_has_no_source_tokenizer(tmp_path: Path) -> None:
    config = recipe(
        tmp_path,
        task={"kind": "language-model"},
        model={"encoder": {"kind": "none"}, "decoder": LANGUAGE_MODEL_DECODER},
    )
    source, target = train_tokenizers(config)
    assert source is None
    assert UNKNOWN not in target.encode("one two three")
    assert UNKNOWN in target.encode("zwei")


def test_tags_and_lowercase_apply_to_the_tokenizers(tmp_path: Path) -> None:
    text = {"tokenizer": {"kind": "characters"}, "lowercase": True, "tags": ["<U>"]}
    source, _ = train_tokenizers(recipe(tmp_path, text=text))
    assert source is not None
    assert source.decode(source.encode("<U> EINS")) == "<U> eins"


def test_normalization_and_byte_fallback_apply_to_the_tokenizers(tmp_path: Path) -> None:
    text = {"tokenizer": {"kind": "subwords", "size": 320}, "byte_fallback": True}
    for form in ("nfc", "nfkc", "none"):
        config = recipe(tmp_path, text={**text, "normalization": form})
        for tokenizer in train_tokenizers(config):
            assert tokenizer is not None
            assert tokenizer.preprocessing.normalization == form
            assert UNKNOWN not in tokenizer.encode("☃")


def test_tokenizers_are_cached_until_the_text_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = recipe(tmp_path)
    first = train_tokenizers(config)
    with monkeypatch.context() as patch:
        patch.setattr("seqloom.data.corpus.vocabularies.train_tokenizer", None)
        again = train_tokenizers(config)
        assert [t.digest for t in again if t] == [t.digest for t in first if t]
    with (tmp_path / "train.tsv").open("a") as file:
        file.write("Öl\toil\n")
    changed = train_tokenizers(config)
    assert changed[1].digest != first[1].digest


def test_damaged_vocabulary_is_trained_again(tmp_path: Path, isolated_cache: Path) -> None:
    config = recipe(tmp_path)
    _, target = train_tokenizers(config)
    (path,) = (isolated_cache / "vocabularies").glob("*/target.json")
    reports: list[ReadingProgress] = []
    path.write_bytes(path.read_bytes()[:-9])
    assert train_tokenizers(config, reports.append)[1].digest == target.digest
    same_size = bytearray(path.read_bytes())
    same_size[len(same_size) // 2] ^= 1
    path.write_bytes(same_size)
    assert train_tokenizers(config, reports.append)[1].digest == target.digest
    assert [str(path) in each.note for each in reports] == [True, True]
    assert train_tokenizers(config, reports.append)[1].digest == target.digest
    assert len(reports) == 2, "an intact vocabulary is not reported"


def test_process_that_waits_for_a_vocabulary_reports_it(
    tmp_path: Path, isolated_cache: Path
) -> None:
    config = recipe(tmp_path)
    train_tokenizers(config)
    (folder,) = (isolated_cache / "vocabularies").glob("[!.]*")
    (folder / "manifest.json").unlink()
    waits = threading.Event()

    def progress(reading: ReadingProgress) -> None:
        if reading.waits:
            waits.set()

    thread = threading.Thread(target=train_tokenizers, args=(config, progress))
    with FileLock(folder.with_name(f".lock-{folder.name}")):
        thread.start()
        assert waits.wait(20)
    thread.join()


def test_vocabulary_too_small_for_the_characters_is_an_error(
    tmp_path: Path, isolated_cache: Path
) -> None:
    config = recipe(tmp_path, text={"tokenizer": {"kind": "subwords", "size": 5}})
    with pytest.raises(ConfigError, match=r"of 5 subwords is too small"):
        train_tokenizers(config)
    assert not list((isolated_cache / "vocabularies").glob("[!.]*"))


def test_both_vocabularies_are_learned_in_one_pass_over_the_data(
    tmp_path: Path, isolated_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []

    def count(*arguments: Any) -> Iterator[Example]:
        reads.append(arguments)
        return read_split(*arguments)

    monkeypatch.setattr("seqloom.data.corpus.vocabularies.read_split", count)
    tokenizers = train_tokenizers(recipe(tmp_path, text={"shared": False}))
    assert tokenizers.source is not tokenizers.target
    assert len(reads) == 1
    assert not list(isolated_cache.rglob(SOURCES))


def test_number_of_pairs_in_large_files_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = recipe(tmp_path).data
    expected = count_pairs(data)
    monkeypatch.setattr("seqloom.data.corpus.digests.MIN_CACHED_BYTES", 1)
    assert count_pairs(data) == expected
    monkeypatch.setattr("seqloom.data.readers.splits.read_split", None)
    assert count_pairs(data) == expected
