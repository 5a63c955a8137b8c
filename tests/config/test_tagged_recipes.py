"""Several languages in one recipe: what may be said, and what is answered where it cannot be."""

import re
from pathlib import Path
from typing import Any

import pytest

from seqloom.config.languages import LanguagesConfig
from seqloom.config.load import dump, resolve
from seqloom.config.run import RunConfig
from seqloom.config.tags import asked_for, each_corpus, pairs_of, tags_of
from seqloom.config.toml import parse
from seqloom.core.errors import ConfigError

Tables = dict[str, Any]


def languages(*pairs: str, path: str = "train.{language}.gz") -> Tables:
    return {"kind": "languages", "path": path, "pairs": list(pairs)}


def recipe(train: Any, **data: Any) -> Tables:
    return {
        "data": {"train": train, "dev": data.pop("dev", train), **data},
        "model": {"encoder": {"kind": "recurrent"}, "decoder": {"kind": "recurrent"}},
        "training": {"steps": 1},
    }


def read(train: Any, **data: Any) -> RunConfig:
    return resolve(recipe(train, **data)).config


def refusal(train: Any, **data: Any) -> str:
    with pytest.raises(ConfigError) as info:
        read(train, **data)
    return str(info.value)


def test_pairs_of_languages_are_corpora_that_are_tagged_with_their_target() -> None:
    config = read(languages("en-de", "de-en", "en-fr"))
    corpora = each_corpus(config.data.train)
    assert [(one.source, one.target, one.tag, one.name) for one in corpora] == [  # type: ignore[union-attr]
        ("train.en.gz", "train.de.gz", "<2de>", "en-de"),
        ("train.de.gz", "train.en.gz", "<2en>", "de-en"),
        ("train.en.gz", "train.fr.gz", "<2fr>", "en-fr"),
    ]
    assert tags_of(config.data) == ("<2de>", "<2en>", "<2fr>")


def test_pairs_may_have_files_of_their_own_that_both_directions_share() -> None:
    table = LanguagesConfig(path="{pair}/train.{language}", pairs=("en-de", "de-en"))
    assert [(one.source, one.target) for one in pairs_of(table)] == [
        ("de-en/train.en", "de-en/train.de"),
        ("de-en/train.de", "de-en/train.en"),
    ]


def test_a_compact_recipe_stays_compact_when_it_is_written_out() -> None:
    config = read(languages("en-de", "de-en"), temperature=5.0)
    assert resolve(parse(dump(config).encode())).config == config
    assert dump(config).count("[[data.") == 2


def test_a_language_is_asked_for_by_its_name_and_any_other_tag_by_itself() -> None:
    assert [asked_for(tag) for tag in ("<2de>", "<U>", "<2>")] == ["de", "<U>", "<2>"]


def test_a_pair_that_was_never_trained_on_may_be_tested_if_its_languages_were() -> None:
    read(languages("en-de", "de-en", "en-fr", "fr-en"), test=languages("de-fr", "fr-de"))


@pytest.mark.parametrize(
    ("pairs", "path", "message"),
    [
        (["en_de"], "a.{language}", "data.train.pairs: 'en_de' is no pair of languages"),
        (["en-de-fr"], "a.{language}", "'en-de-fr' is no pair of languages; it must look like"),
        (["en-de", "en-de"], "a.{language}", "data.train.pairs: 'en-de' is given twice"),
        (["en-de"], "train.gz", "data.train.path: 'train.gz' must name the file of every language"),
        (["en-de"], "{language}.{x}", "beside it only '{pair}' may stand in braces"),
        ([], "a.{language}", "data.train.pairs: must not be empty"),
    ],
)
def test_a_table_of_languages_that_cannot_be_read(
    pairs: list[str], path: str, message: str
) -> None:
    dev = languages("en-de")
    assert message in refusal({"kind": "languages", "path": path, "pairs": pairs}, dev=dev)


TSV = {"kind": "tsv", "path": "a.tsv"}


def test_a_tag_of_dev_or_test_must_be_in_training() -> None:
    said = refusal({**TSV, "tag": "<2de>"}, test={**TSV, "tag": "<2fr>"})
    assert "data.test: the tag '<2fr>' is in no training corpus" in said
    assert "the tags of data.train are: <2de>" in said
    said = refusal(languages("en-de"), test=languages("en-fr"))
    assert "data.test: the tag '<2fr>' is in no training corpus" in said


def test_a_source_language_that_training_never_shows_is_refused() -> None:
    said = refusal(languages("en-de", "fr-de"), test=languages("cs-de"))
    assert "data.test: 'cs' is in no pair of data.train; its languages are de, en, fr" in said


def test_where_one_corpus_is_tagged_all_are() -> None:
    said = refusal([{**TSV, "tag": "<2de>"}, TSV])
    assert "data.train: corpus 1 (counted from 0) has no tag, but training has <2de>" in said
    said = refusal({**TSV, "tag": "<2de>"}, dev=TSV)
    assert "data.dev: corpus 0" in said
    assert "for example tag = '<2de>'" in said


def test_a_tag_is_one_word() -> None:
    assert "the tag 'to de' must be one word" in refusal({**TSV, "tag": "to de"})


def test_what_is_held_out_of_one_direction_must_not_be_learned_from_the_other() -> None:
    said = refusal(languages("en-de", "de-en"), dev={"kind": "hold-out"})
    assert "data.dev: what is held out of 'en-de' would be learned the other way round" in said
    read(languages("en-de", "en-fr"), dev={"kind": "hold-out"})


def test_a_temperature_needs_something_to_choose_between() -> None:
    said = refusal(TSV, temperature=5.0)
    assert "data.temperature: there is one part of training data only" in said
    assert "data.temperature: must be at least 1" in refusal([TSV, TSV], temperature=0.5)
    read([TSV, {**TSV, "path": "b.tsv"}], temperature=5.0)


def test_numbers_are_seen_as_often_as_there_are() -> None:
    series = {"kind": "series", "path": "a.csv", "columns": ["x"]}
    assert "data.temperature: series and tracks" in refusal([series, series], temperature=2.0)


def test_a_language_model_has_no_use_for_tags() -> None:
    tables = recipe({**TSV, "tag": "<2de>"})
    tables |= {"task": {"kind": "language-model"}, "model": {"decoder": {"kind": "recurrent"}}}
    with pytest.raises(ConfigError, match="a language model reads nothing, so no tag"):
        resolve(tables)


def test_a_gap_lies_in_a_layer_that_there_is() -> None:
    tables = recipe(languages("en-de"))
    tables["model"]["encoder"] = {"kind": "transformer", "layers": 3, "residual_gap": 4}
    with pytest.raises(ConfigError, match=r"model.encoder.residual_gap: there is no layer 4 of 3"):
        resolve(tables)


PAGES = Path(__file__).parents[2] / "docs" / "tasks"


@pytest.mark.parametrize("name", ["many-languages", "low-resource"])
def test_every_recipe_in_the_docs_can_be_read(name: str) -> None:
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```$", page, flags=re.M | re.S)
    assert blocks
    for block in blocks:
        tables = {"preset": "small", **parse(block.encode())}
        tables["data"].setdefault("dev", tables["data"]["train"])
        resolve(tables)
