"""Several language pairs in one split: tags, groups, and temperature sampling."""

from pathlib import Path
from typing import Literal

import pytest

from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.corpora import HoldOutConfig, LanguagesConfig, TsvConfig
from seqloom.config.schema.data import DataConfig
from seqloom.core.errors import NotFoundError
from seqloom.data.batching.layout import PaddedLayout
from seqloom.data.batching.mixture import groups_of
from seqloom.data.batching.stream import BatchStream
from seqloom.data.checks.doctor import examine
from seqloom.data.corpus.corpus import Corpus, build_corpus
from seqloom.data.corpus.vocabularies import train_tokenizers
from seqloom.data.example import Example
from seqloom.data.modalities.text import TextModality
from seqloom.data.preparation.request import CorpusRequest, fingerprint
from seqloom.data.readers.splits import first_of_each_group, merge_references, read_split
from seqloom.text.tokenizer import Tokenizer
from support.toy_languages import WORDS, translate_words, write_languages

PAIRS = ("en-de", "de-en", "en-fr")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_languages(tmp_path_factory.mktemp("languages"), ["train", "val"], lines=40)


def data_config(folder: Path, pairs: tuple[str, ...] = PAIRS) -> DataConfig:
    train = LanguagesConfig(path="train.{language}.gz", pairs=pairs)
    dev = LanguagesConfig(path="val.{language}.gz", pairs=pairs)
    return DataConfig(folder=str(folder), train=(train,), dev=(dev,))


def train_shared_tokenizer(data: DataConfig, kind: str = "words") -> Tokenizer:
    tables = {
        "data": data.model_dump(mode="json"),
        "text": {"tokenizer": {"kind": kind}, "shared": True},
        "model": {"encoder": {"kind": "recurrent"}, "decoder": {"kind": "recurrent"}},
        "training": {"steps": 1},
    }
    return train_tokenizers(load_recipe(tables).config).target


def make_corpus(
    data: DataConfig, tag_side: Literal["source", "target"] = "source", kind: str = "words"
) -> Corpus:
    tokenizer = train_shared_tokenizer(data, kind)
    return build_corpus(
        CorpusRequest(data, "train", TextModality(tokenizer), tokenizer, tag_side=tag_side)
    )


def test_pairs_are_read_in_order_with_a_tag_before_each_source(folder: Path) -> None:
    examples = list(read_split(data_config(folder), "train"))
    assert [example.group for example in examples] == [pair for pair in PAIRS for _ in range(40)]
    for example in examples:
        source, target = example.group.split("-")
        tag, _, text = example.source.partition(" ")
        assert tag == example.tag == f"<2{target}>"
        assert example.target == translate_words(text, source, target)


def test_error_names_each_missing_file_once(folder: Path) -> None:
    data = data_config(folder, ("en-de", "en-it", "it-en", "en-nl"))
    for read in (lambda: list(read_split(data, "train")), lambda: train_shared_tokenizer(data)):
        with pytest.raises(NotFoundError) as info:
            read()
        lines = str(info.value).splitlines()
        assert [line.split(":")[0].rsplit("/", 1)[1] for line in lines] == [
            *("train.it.gz", "train.nl.gz")
        ]


def test_doctor_reports_each_missing_file_once(folder: Path) -> None:
    tables = {
        "data": data_config(folder, ("en-it", "it-en")).model_dump(mode="json"),
        "model": {"encoder": {"kind": "recurrent"}, "decoder": {"kind": "recurrent"}},
        "training": {"steps": 1},
    }
    findings = examine(load_recipe(tables).config).findings
    errors = [finding.what.split(":")[0] for finding in findings if finding.level == "error"]
    assert errors == [f"{folder}/train.it.gz", f"{folder}/val.it.gz"]


def test_tags_of_the_corpora_are_in_the_vocabulary(folder: Path) -> None:
    tokenizer = train_shared_tokenizer(data_config(folder))
    assert tokenizer.preprocessing.tags.names == ("<2de>", "<2en>", "<2fr>")
    assert tokenizer.pieces(tokenizer.encode("<2fr> dog")) == ["<2fr>", "dog"]


def test_held_out_sentence_is_held_out_for_all_target_languages(folder: Path) -> None:
    data = data_config(folder, ("en-de", "en-fr", "en-cs"))
    data = data.model_copy(update={"dev": (HoldOutConfig(fraction=0.3),)})
    held_out, kept = (
        {e.source.split(" ", 1)[1] for e in read_split(data, s)} for s in ("dev", "train")
    )
    assert held_out
    assert not held_out & kept


def test_references_are_merged_within_a_group_only() -> None:
    examples = [
        Example("<2fr> Tom", target, (target,), "", group, "<2fr>")
        for group, target in (("en-fr", "a"), ("de-fr", "b"), ("en-fr", "c"))
    ]
    merged = merge_references(examples)
    assert [example.references for example in merged] == [("a", "c"), ("b",)]


def test_first_examples_alternate_between_groups() -> None:
    examples = [
        Example(str(n), "", (), "", group) for group, n in zip("aaaaaabbc", range(9), strict=True)
    ]
    assert [e.group for e in first_of_each_group(examples, 6)] == ["a", "b", "c", "a", "b", "a"]
    assert len(first_of_each_group(examples, 100)) == 9


def test_single_group_is_read_only_as_far_as_needed() -> None:
    def endless() -> object:
        while True:
            yield Example("a", "b", ("b",), "")

    assert len(first_of_each_group(endless(), 3)) == 3  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["words", "characters"])
def test_tag_is_before_the_source_or_starts_the_target(folder: Path, kind: str) -> None:
    data = data_config(folder)
    tokenizer = train_shared_tokenizer(data, kind)
    source_tagged = make_corpus(data, "source", kind)
    target_tagged = make_corpus(data, "target", kind)
    first = next(iter(read_split(data, "train")))
    text = first.source.removeprefix("<2de> ")
    assert tokenizer.decode(source_tagged.source(0).tolist()) == f"<2de> {text}"
    assert tokenizer.decode(source_tagged.target(0).tolist()) == first.target
    assert tokenizer.decode(target_tagged.source(0).tolist()) == text
    tag, *rest = target_tagged.target(0).tolist()
    assert tokenizer.pieces([tag]) == ["<2de>"]
    assert tokenizer.decode(rest) == first.target
    assert source_tagged.folder != target_tagged.folder


def test_fingerprint_depends_on_tag_and_name(folder: Path) -> None:
    (folder / "a.tsv").write_text("dog\thund\n")
    settings: tuple[dict[str, str], ...] = (
        {},
        {"tag": "<2de>"},
        {"tag": "<2fr>"},
        {"tag": "<2fr>", "name": "tickets"},
    )
    digests = {
        fingerprint(
            DataConfig(folder=str(folder), train=(TsvConfig(path="a.tsv", **tags),)), "train"
        )
        for tags in settings
    }
    assert len(digests) == len(settings)


def test_corpus_report_contains_the_groups(folder: Path) -> None:
    groups = groups_of(make_corpus(data_config(folder)).report)
    assert [(group.name, group.ranges) for group in groups] == [
        *(("en-de", ((0, 40),)), ("de-en", ((40, 80),)), ("en-fr", ((80, 120),)))
    ]


def test_group_of_a_corpus_without_a_name_is_its_table(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("dog\thund\ncat\tkatze\n")
    (tmp_path / "b.tsv").write_text("man\tmann\n")
    files = tuple(TsvConfig(path=name) for name in ("a.tsv", "b.tsv"))
    data = DataConfig(folder=str(tmp_path), train=files, dev=files[:1])
    assert [group.name for group in groups_of(make_corpus(data).report)] == [
        "data.train[0]",
        "data.train[1]",
    ]
    assert {example.group for example in read_split(data, "dev")} == {""}


def test_temperature_repeats_small_groups_equally_on_all_ranks(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("dog\thund\n" * 60)
    (tmp_path / "b.tsv").write_text("man\tmann\ncat\tkatze\n")
    files = tuple(TsvConfig(path=name) for name in ("a.tsv", "b.tsv"))
    data = DataConfig(folder=str(tmp_path), train=files, dev=files[:1])
    corpus = make_corpus(data)
    single = BatchStream(corpus, PaddedLayout(20), 1, temperature=1e9)
    ranks = [BatchStream(corpus, PaddedLayout(20), 1, rank, 2, 1e9) for rank in range(2)]
    counts: dict[int, int] = {}
    while single.epoch_of(single.position) == 0:
        batches = [next(single)]
        if single.epoch_of(single.position) == 0:
            batches.append(next(single))
        for batch, stream in zip(batches, ranks, strict=False):
            assert batch.targets.values.equal(next(stream).targets.values)
            for word in batch.targets.values[:, 0].tolist():
                counts[word] = counts.get(word, 0) + 1
    assert sorted(counts.values()) == [15, 16, 31]  # "mann" and "katze" share the draws of b.tsv


def test_resumed_stream_continues_with_the_same_draws(folder: Path) -> None:
    corpus = make_corpus(data_config(folder, ("en-de", "en-fr")))
    uninterrupted, resumed = (
        BatchStream(corpus, PaddedLayout(40), 1, temperature=3.0) for _ in range(2)
    )
    for _ in range(37):
        next(uninterrupted)
    resumed.position = uninterrupted.position
    for _ in range(40):
        assert next(uninterrupted).targets.values.equal(next(resumed).targets.values)


def test_toy_languages_have_a_word_for_every_meaning() -> None:
    assert {len(set(words)) for words in WORDS.values()} == {8}
