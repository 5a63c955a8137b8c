"""Which languages a run translates, as far as anybody says so."""

from typing import Any

import pytest

from seqloom.config.loading.loader import load_recipe
from seqloom.core.errors import ConfigError
from seqloom.serving.languages import Pair, name_of, named_pairs, pairs_of
from tiny_runs import recipe


def pairs(**train: Any) -> list[str]:
    plain = recipe()
    tables = plain.model_dump(mode="json", exclude_none=True)
    tables["data"] |= {"train": train, "dev": train, "test": train}
    return [str(pair) for pair in pairs_of(load_recipe(tables, ()).config)]


def test_recipes_that_say_it() -> None:
    assert pairs(kind="bundled", source="de", target="en") == ["de-en"]
    assert pairs(kind="parallel", source="a/train.de.gz", target="b/train.en") == ["de-en"]
    assert pairs(kind="jsonl", path="x", source="fr", target="yo") == ["fr-yo"]
    many = {"kind": "languages", "path": "train.{language}", "pairs": ["en-de", "de-en"]}
    assert pairs(**many) == ["en-de", "de-en"]


def test_recipes_that_do_not() -> None:
    assert pairs_of(recipe()) == ()
    assert pairs(kind="parallel", source="train.input", target="train.output") == []
    assert pairs(kind="tsv", path="train.tsv") == []


def test_the_owner_has_the_last_word() -> None:
    assert named_pairs(["de:en"], ["demo"]) == {"demo": Pair("de", "en")}
    both = named_pairs(["a=de:en", "b=en:pt-BR"], ["a", "b"])
    assert both == {"a": Pair("de", "en"), "b": Pair("en", "pt-BR")}
    with pytest.raises(ConfigError, match="say of which: --languages a=de:en"):
        named_pairs(["de:en"], ["a", "b"])


def test_languages_have_names() -> None:
    assert name_of("de") == "German"
    assert name_of("cu") == "Church Slavonic"
    assert name_of("x-klingon") == "x-klingon"
