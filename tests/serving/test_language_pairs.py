"""Language pairs from recipes and from --languages, and language names."""

from typing import Any

import pytest

from seqloom.config.loading.loader import load_recipe
from seqloom.core.errors import ConfigError
from seqloom.serving.api.languages.pairs import (
    LanguagePair,
    parse_language_options,
    recipe_language_pairs,
)
from seqloom.text.language_names import language_name
from support.tiny_runs import tiny_config


def pairs_of_recipe(**train: Any) -> list[str]:
    tables = tiny_config().model_dump(mode="json", exclude_none=True)
    tables["data"] |= {"train": train, "dev": train, "test": train}
    return [str(pair) for pair in recipe_language_pairs(load_recipe(tables, ()).config)]


def test_recipes_that_name_their_languages() -> None:
    assert pairs_of_recipe(kind="bundled", source="de", target="en") == ["de-en"]
    files = {"source": "a/train.de.gz", "target": "b/train.en"}
    assert pairs_of_recipe(kind="parallel", **files) == ["de-en"]
    assert pairs_of_recipe(kind="jsonl", path="x", source="fr", target="yo") == ["fr-yo"]
    assert pairs_of_recipe(kind="tsv", path="x", name="de-en") == ["de-en"]
    multilingual = {"kind": "languages", "path": "train.{language}", "pairs": ["en-de", "de-en"]}
    assert pairs_of_recipe(**multilingual) == ["en-de", "de-en"]


def test_recipes_that_do_not_name_their_languages() -> None:
    assert recipe_language_pairs(tiny_config()) == ()
    assert pairs_of_recipe(kind="parallel", source="train.input", target="train.output") == []
    assert pairs_of_recipe(kind="tsv", path="train.tsv") == []
    assert pairs_of_recipe(kind="tsv", path="train.tsv", name="web-crawl") == []


def test_language_options_name_the_pair_of_each_run() -> None:
    assert parse_language_options(["de:en"], ["demo"]) == {"demo": LanguagePair("de", "en")}
    both = parse_language_options(["a=de:en", "b=en:pt-BR"], ["a", "b"])
    assert both == {"a": LanguagePair("de", "en"), "b": LanguagePair("en", "pt-BR")}
    with pytest.raises(ConfigError, match="for example --languages a=de:en"):
        parse_language_options(["de:en"], ["a", "b"])


def test_language_names_default_to_the_code() -> None:
    assert language_name("de") == "German"
    assert language_name("cu") == "Church Slavonic"
    assert language_name("x-klingon") == "x-klingon"
