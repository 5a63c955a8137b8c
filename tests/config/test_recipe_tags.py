"""Recipes with several languages and their tags."""

import re
from pathlib import Path
from typing import Any

import pytest

from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.toml import format_recipe, parse_toml
from seqloom.config.schema.corpora import LanguagesConfig, tag_display_name
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.tags import (
    expand_corpora,
    training_tags,
)
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
    return load_recipe(recipe(train, **data)).config


def error_message(train: Any, **data: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        read(train, **data)
    return str(caught.value)


def test_language_pairs_become_corpora_tagged_with_their_target() -> None:
    config = read(languages("en-de", "de-en", "en-fr"))
    corpora = expand_corpora(config.data.train)
    assert [(corpus.source, corpus.target, corpus.tag, corpus.name) for corpus in corpora] == [  # type: ignore[union-attr]
        ("train.en.gz", "train.de.gz", "<2de>", "en-de"),
        ("train.de.gz", "train.en.gz", "<2en>", "de-en"),
        ("train.en.gz", "train.fr.gz", "<2fr>", "en-fr"),
    ]
    assert training_tags(config.data) == ("<2de>", "<2en>", "<2fr>")


def test_both_directions_of_a_pair_share_its_files() -> None:
    table = LanguagesConfig(path="{pair}/train.{language}", pairs=("en-de", "de-en"))
    assert [(corpus.source, corpus.target) for corpus in table.expand()] == [
        ("de-en/train.en", "de-en/train.de"),
        ("de-en/train.de", "de-en/train.en"),
    ]


def test_formatting_keeps_the_table_of_languages() -> None:
    config = read(languages("en-de", "de-en"), temperature=5.0)
    assert load_recipe(parse_toml(format_recipe(config).encode())).config == config
    assert format_recipe(config).count("[[data.") == 2


def test_a_language_tag_is_shown_as_its_language() -> None:
    assert [tag_display_name(tag) for tag in ("<2de>", "<U>", "<2>")] == ["de", "<U>", "<2>"]


def test_a_pair_without_training_data_can_be_tested_if_its_languages_are_trained() -> None:
    read(languages("en-de", "de-en", "en-fr", "fr-en"), test=languages("de-fr", "fr-de"))


@pytest.mark.parametrize(
    ("pairs", "path", "message"),
    [
        (["en_de"], "a.{language}", "data.train.pairs: 'en_de' is not a pair of languages"),
        (
            ["en-de-fr"],
            "a.{language}",
            "'en-de-fr' is not a pair of languages; it must have the form",
        ),
        (["en-de", "en-de"], "a.{language}", "data.train.pairs: 'en-de' is given twice"),
        (["en-de"], "train.gz", "data.train.path: 'train.gz' must contain '{language}'"),
        (["en-de"], "{language}.{x}", "'{pair}' is the only other field allowed in braces"),
        ([], "a.{language}", "data.train.pairs: must not be empty"),
    ],
)
def test_an_invalid_table_of_languages_is_rejected(
    pairs: list[str], path: str, message: str
) -> None:
    dev = languages("en-de")
    assert message in error_message({"kind": "languages", "path": path, "pairs": pairs}, dev=dev)


TSV = {"kind": "tsv", "path": "a.tsv"}


def test_tags_of_dev_and_test_must_be_in_training() -> None:
    message = error_message({**TSV, "tag": "<2de>"}, test={**TSV, "tag": "<2fr>"})
    assert "data.test: the tag '<2fr>' is in no training corpus" in message
    assert "the tags of data.train and text.tags are: <2de>" in message
    message = error_message(languages("en-de"), test=languages("en-fr"))
    assert "data.test: the tag '<2fr>' is in no training corpus" in message


def test_a_source_language_that_training_lacks_is_rejected() -> None:
    message = error_message(languages("en-de", "fr-de"), test=languages("cs-de"))
    problem = (
        "data.test: 'cs' is in no pair of data.train; the languages of data.train are de, en, fr"
    )
    assert problem in message


def test_if_one_corpus_has_a_tag_all_need_one() -> None:
    message = error_message([{**TSV, "tag": "<2de>"}, TSV])
    assert "data.train: corpus 1 (counted from 0) has no tag, but training has <2de>" in message
    message = error_message({**TSV, "tag": "<2de>"}, dev=TSV)
    assert "data.dev: corpus 0" in message
    assert "for example tag = '<2de>'" in message


def test_a_tag_has_no_spaces() -> None:
    assert "the tag 'to de' must be one word" in error_message({**TSV, "tag": "to de"})


def test_held_out_pairs_must_not_be_trained_on_in_the_other_direction() -> None:
    message = error_message(languages("en-de", "de-en"), dev={"kind": "hold-out"})
    assert (
        "data.dev: the pairs held out of 'en-de' would be trained on in the other direction"
        in message
    )
    read(languages("en-de", "en-fr"), dev={"kind": "hold-out"})


def test_a_temperature_needs_several_corpora() -> None:
    message = error_message(TSV, temperature=5.0)
    assert "data.temperature: there is only one training corpus" in message
    assert "data.temperature: must be at least 1" in error_message([TSV, TSV], temperature=0.5)
    read([TSV, {**TSV, "path": "b.tsv"}], temperature=5.0)


def test_series_and_tracks_have_no_temperature() -> None:
    series = {"kind": "series", "path": "a.csv", "columns": ["x"]}
    assert "data.temperature: series, tracks and robot paths" in error_message(
        [series, series], temperature=2.0
    )


def test_a_language_model_accepts_no_tags() -> None:
    tables = recipe({**TSV, "tag": "<2de>"})
    tables |= {"task": {"kind": "language-model"}, "model": {"decoder": {"kind": "recurrent"}}}
    with pytest.raises(ConfigError, match="a language model has no source, so it reads no tags"):
        load_recipe(tables)


def test_the_layer_without_residual_connection_must_exist() -> None:
    tables = recipe(languages("en-de"))
    tables["model"]["encoder"] = {"kind": "transformer", "layers": 3, "remove_residual": 4}
    with pytest.raises(
        ConfigError, match=r"model.encoder.remove_residual: there is no layer 4, because layers = 3"
    ):
        load_recipe(tables)


PAGES = Path(__file__).parents[2] / "docs" / "tasks"


@pytest.mark.parametrize("name", ["many-languages", "low-resource"])
def test_every_recipe_in_the_docs_is_valid(name: str) -> None:
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```$", page, flags=re.M | re.S)
    assert blocks
    for block in blocks:
        tables = {"preset": "small", **parse_toml(block.encode())}
        tables["data"].setdefault("dev", tables["data"]["train"])
        load_recipe(tables)
