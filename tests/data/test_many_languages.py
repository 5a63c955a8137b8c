"""Several languages read as one split: tags, parts, and where each goes."""

from pathlib import Path

import pytest

from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.corpora import HoldOutConfig, LanguagesConfig, TsvConfig
from seqloom.config.schema.data import DataConfig
from seqloom.core.errors import NotFoundError
from seqloom.data.corpus import Corpus, CorpusRequest, build_corpus
from seqloom.data.doctor import examine
from seqloom.data.example import Example
from seqloom.data.fingerprint import fingerprint
from seqloom.data.layout import PaddedLayout
from seqloom.data.mixture import parts_of
from seqloom.data.parts import first_of_each_part
from seqloom.data.splits import merge_references, read_split
from seqloom.data.stream import BatchStream
from seqloom.data.vocabularies import learn_tokenizers
from seqloom.text.tokenizer import Tokenizer
from toy_languages import WORDS, translated, write_languages

PAIRS = ("en-de", "de-en", "en-fr")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_languages(tmp_path_factory.mktemp("languages"), ["train", "val"], lines=40)


def data_of(folder: Path, pairs: tuple[str, ...] = PAIRS) -> DataConfig:
    train = LanguagesConfig(path="train.{language}.gz", pairs=pairs)
    dev = LanguagesConfig(path="val.{language}.gz", pairs=pairs)
    return DataConfig(folder=str(folder), train=(train,), dev=(dev,))


def tokenizer_of(data: DataConfig, kind: str = "words") -> Tokenizer:
    tables = {
        "data": data.model_dump(mode="json"),
        "text": {"tokenizer": {"kind": kind}, "shared": True},
        "model": {"encoder": {"kind": "recurrent"}, "decoder": {"kind": "recurrent"}},
        "training": {"steps": 1},
    }
    return learn_tokenizers(load_recipe(tables).config)[1]


def test_every_pair_is_read_in_turn_with_its_tag_before_the_source(folder: Path) -> None:
    examples = list(read_split(data_of(folder), "train"))
    assert [example.part for example in examples] == [pair for pair in PAIRS for _ in range(40)]
    for example in examples:
        source, target = example.part.split("-")
        tag, _, text = example.source.partition(" ")
        assert tag == example.tag == f"<2{target}>"
        assert example.target == translated(text, source, target)


def test_all_files_that_are_missing_are_named_at_once_and_once(folder: Path) -> None:
    data = data_of(folder, ("en-de", "en-it", "it-en", "en-nl"))
    for read in (lambda: list(read_split(data, "train")), lambda: tokenizer_of(data)):
        with pytest.raises(NotFoundError) as info:
            read()
        lines = str(info.value).splitlines()
        assert [line.split(":")[0].rsplit("/", 1)[1] for line in lines] == [
            *("train.it.gz", "train.nl.gz")
        ]


def test_the_doctor_names_each_missing_file_once(folder: Path) -> None:
    tables = {
        "data": data_of(folder, ("en-it", "it-en")).model_dump(mode="json"),
        "model": {"encoder": {"kind": "recurrent"}, "decoder": {"kind": "recurrent"}},
        "training": {"steps": 1},
    }
    findings = examine(load_recipe(tables).config).findings
    errors = [finding.what.split(":")[0] for finding in findings if finding.level == "error"]
    assert errors == [f"{folder}/train.it.gz", f"{folder}/val.it.gz"]


def test_tags_declare_themselves(folder: Path) -> None:
    tokenizer = tokenizer_of(data_of(folder))
    assert tokenizer.tags.names == ("<2de>", "<2en>", "<2fr>")
    assert tokenizer.pieces(tokenizer.encode("<2fr> dog")) == ["<2fr>", "dog"]


def test_one_sentence_is_held_out_of_all_its_languages(folder: Path) -> None:
    data = data_of(folder, ("en-de", "en-fr", "en-cs"))
    data = data.model_copy(update={"dev": (HoldOutConfig(fraction=0.3),)})
    held, kept = (
        {e.source.split(" ", 1)[1] for e in read_split(data, s)} for s in ("dev", "train")
    )
    assert held
    assert not held & kept


def test_references_of_one_source_are_merged_within_a_pair_only() -> None:
    examples = [
        Example("<2fr> Tom", target, (target,), "", part, "<2fr>")
        for part, target in (("en-fr", "a"), ("de-fr", "b"), ("en-fr", "c"))
    ]
    assert [one.references for one in merge_references(examples)] == [("a", "c"), ("b",)]


def test_a_few_examples_are_a_few_of_every_part() -> None:
    examples = [
        Example(str(n), "", (), "", part) for part, n in zip("aaaaaabbc", range(9), strict=True)
    ]
    assert [e.part for e in first_of_each_part(examples, 6)] == ["a", "b", "c", "a", "b", "a"]
    assert len(first_of_each_part(examples, 100)) == 9


def test_one_part_is_read_no_further_than_needed() -> None:
    def endless() -> object:
        while True:
            yield Example("a", "b", ("b",), "")

    assert len(first_of_each_part(endless(), 3)) == 3  # type: ignore[arg-type]


def corpus_of(data: DataConfig, side: str = "source", kind: str = "words") -> Corpus:
    tokenizer = tokenizer_of(data, kind)
    return build_corpus(CorpusRequest(data, "train", tokenizer, tokenizer, tag_side=side))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["words", "characters"])
def test_a_tag_goes_before_the_source_or_begins_the_target(folder: Path, kind: str) -> None:
    data = data_of(folder)
    tokenizer = tokenizer_of(data, kind)
    before, behind = corpus_of(data, "source", kind), corpus_of(data, "target", kind)
    first = next(iter(read_split(data, "train")))
    text = first.source.removeprefix("<2de> ")
    assert tokenizer.decode(before.source(0).tolist()) == f"<2de> {text}"
    assert tokenizer.decode(before.target(0).tolist()) == first.target
    assert tokenizer.decode(behind.source(0).tolist()) == text
    tag, *rest = behind.target(0).tolist()
    assert tokenizer.pieces([tag]) == ["<2de>"]
    assert tokenizer.decode(rest) == first.target
    assert before.folder != behind.folder


def test_all_that_is_said_of_a_corpus_changes_its_digest(folder: Path) -> None:
    (folder / "a.tsv").write_text("dog\thund\n")
    said: tuple[dict[str, str], ...] = (
        {},
        {"tag": "<2de>"},
        {"tag": "<2fr>"},
        {"tag": "<2fr>", "name": "tickets"},
    )
    digests = {
        fingerprint(
            DataConfig(folder=str(folder), train=(TsvConfig(path="a.tsv", **one),)), "train"
        )
        for one in said
    }
    assert len(digests) == len(said)


def test_a_corpus_knows_its_parts(folder: Path) -> None:
    parts = parts_of(corpus_of(data_of(folder)).report)
    assert [(part.name, part.stretches) for part in parts] == [
        *(("en-de", ((0, 40),)), ("de-en", ((40, 80),)), ("en-fr", ((80, 120),)))
    ]


def test_corpora_without_a_name_are_called_by_their_place(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("dog\thund\ncat\tkatze\n")
    (tmp_path / "b.tsv").write_text("man\tmann\n")
    files = tuple(TsvConfig(path=name) for name in ("a.tsv", "b.tsv"))
    data = DataConfig(folder=str(tmp_path), train=files, dev=files[:1])
    assert [part.name for part in parts_of(corpus_of(data).report)] == [
        "data.train[0]",
        "data.train[1]",
    ]
    assert {example.part for example in read_split(data, "dev")} == {""}


def test_a_temperature_repeats_what_is_rare_the_same_way_on_every_rank(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("dog\thund\n" * 60)
    (tmp_path / "b.tsv").write_text("man\tmann\ncat\tkatze\n")
    files = tuple(TsvConfig(path=name) for name in ("a.tsv", "b.tsv"))
    data = DataConfig(folder=str(tmp_path), train=files, dev=files[:1])
    corpus = corpus_of(data)
    alone = BatchStream(corpus, PaddedLayout(20), 1, temperature=1e9)
    ranks = [BatchStream(corpus, PaddedLayout(20), 1, rank, 2, 1e9) for rank in range(2)]
    seen: dict[int, int] = {}
    while alone.epoch_of(alone.position) == 0:
        batches = [next(alone)]
        if alone.epoch_of(alone.position) == 0:
            batches.append(next(alone))
        for batch, stream in zip(batches, ranks, strict=False):
            assert batch.targets.values.equal(next(stream).targets.values)
            for word in batch.targets.values[:, 0].tolist():
                seen[word] = seen.get(word, 0) + 1
    assert sorted(seen.values()) == [15, 16, 31]  # man and cat share what b.tsv is given


def test_a_resumed_stream_goes_on_with_the_same_draws(folder: Path) -> None:
    corpus = corpus_of(data_of(folder, ("en-de", "en-fr")))
    straight, resumed = (
        BatchStream(corpus, PaddedLayout(40), 1, temperature=3.0) for _ in range(2)
    )
    for _ in range(37):
        next(straight)
    resumed.position = straight.position
    for _ in range(40):
        assert next(straight).targets.values.equal(next(resumed).targets.values)


def test_toy_languages_have_a_word_for_everything() -> None:
    assert {len(set(words)) for words in WORDS.values()} == {8}
