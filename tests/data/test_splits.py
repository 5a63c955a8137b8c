"""Reading splits: hold-outs, several corpora, and merged references."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.schema.corpora import (
    BundledConfig,
    HoldOutConfig,
    LinesConfig,
    SyntheticConfig,
    TsvConfig,
)
from seqloom.config.schema.data import DataConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.data.example import Example, Split
from seqloom.data.readers.splits import merge_references, read_split

SPLITS: tuple[Split, ...] = ("train", "dev", "test")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [f"source {n // 2}\ttarget {n}\n" for n in range(2_000)]
    (tmp_path / "a.tsv").write_text("".join(lines))
    (tmp_path / "b.tsv").write_text("other 1\tx\nother 2\ty\n")
    (tmp_path / "empty").write_text("")
    return tmp_path


def hold_out_config(folder: Path, dev: float = 0.1, test: float = 0.1) -> DataConfig:
    return DataConfig(
        folder=str(folder),
        train=TsvConfig(path="a.tsv"),
        dev=HoldOutConfig(fraction=dev),
        test=HoldOutConfig(fraction=test),
    )


def test_hold_outs_and_training_data_together_are_the_corpus(folder: Path) -> None:
    data = hold_out_config(folder)
    targets = [{e.target for e in read_split(data, split)} for split in SPLITS]
    assert sum(map(len, targets)) == 2_000
    assert set().union(*targets) == {f"target {n}" for n in range(2_000)}
    assert all(100 < len(held_out) < 300 for held_out in targets[1:])


def test_all_translations_of_a_source_stay_in_one_split(folder: Path) -> None:
    data = hold_out_config(folder)
    sources = [{e.source for e in read_split(data, split)} for split in SPLITS]
    assert sum(map(len, sources)) == 1_000


def test_changing_the_dev_fraction_does_not_change_the_test_split(folder: Path) -> None:
    small_dev = list(read_split(hold_out_config(folder, dev=0.05), "test"))
    large_dev = list(read_split(hold_out_config(folder, dev=0.3), "test"))
    assert small_dev == large_dev


def test_plain_lines_are_held_out_by_their_text(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("".join(f"line {n % 500}\n" for n in range(1_000)))
    data = DataConfig(folder=str(tmp_path), train=LinesConfig(path="text"))
    train = {e.target for e in read_split(data, "train")}
    dev = {e.target for e in read_split(data, "dev")}
    assert dev
    assert not train & dev


def test_corpora_are_read_in_order_and_may_repeat(folder: Path) -> None:
    b = TsvConfig(path="b.tsv")
    data = DataConfig(folder=str(folder), train=(b, TsvConfig(path="a.tsv"), b), dev=b)
    sources = [e.source for e in read_split(data, "train")]
    assert len(sources) == 2_004
    assert sources[:2] == sources[-2:] == ["other 1", "other 2"]


def test_hold_out_given_twice_is_read_once(folder: Path) -> None:
    once = hold_out_config(folder)
    twice = once.model_copy(update={"dev": (HoldOutConfig(fraction=0.1),) * 2})
    assert list(read_split(twice, "dev")) == list(read_split(once, "dev"))


def test_splits_of_bundled_and_synthetic_corpora_are_disjoint() -> None:
    for corpus in (
        BundledConfig(source="de", target="en"),
        SyntheticConfig(task="copy", examples=100),
    ):
        data = DataConfig(train=corpus, dev=corpus, test=corpus)
        sources = [{e.source for e in read_split(data, split)} for split in SPLITS]
        assert not sources[0] & sources[1]
        assert not sources[1] & sources[2]


def test_empty_corpus_is_an_error(folder: Path) -> None:
    data = DataConfig(folder=str(folder), train=TsvConfig(path="empty"))
    with pytest.raises(DataError, match=r"data\.train: empty: there is no example"):
        list(read_split(data, "train"))


def test_empty_hold_out_is_an_error(folder: Path) -> None:
    data = DataConfig(folder=str(folder), train=TsvConfig(path="b.tsv"))
    with pytest.raises(
        DataError, match=r"data\.dev: holding out 2\.0% .* selects no example for dev"
    ):
        list(read_split(data, "dev"))


def test_missing_split_is_an_error_that_shows_how_to_set_it(folder: Path) -> None:
    data = DataConfig(folder=str(folder), train=TsvConfig(path="a.tsv"))
    with pytest.raises(
        ConfigError, match=r"data\.test: is not set.* evaluate RUN --set 'data\.test=\{kind"
    ):
        list(read_split(data, "test"))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"))))
def test_merging_keeps_every_source_and_every_reference_once(pairs: list[tuple[str, str]]) -> None:
    merged = merge_references(Example(s, t, (t,), "") for s, t in pairs)
    assert [e.source for e in merged] == list(dict.fromkeys(s for s, _ in pairs))
    for example in merged:
        assert example.references == tuple(
            dict.fromkeys(t for s, t in pairs if s == example.source)
        )
        assert example.target == example.references[0]


def test_examples_without_a_source_are_not_merged() -> None:
    lines = [Example("", text, (text,), "") for text in ("a", "b", "a")]
    assert merge_references(lines) == lines
