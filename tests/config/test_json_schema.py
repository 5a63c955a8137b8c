"""The JSON Schema of recipes accepts valid recipes and rejects mistyped keys and values."""

import json
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
import pytest

from seqloom.config.loading.bundled import bundled_presets, bundled_recipes
from seqloom.config.loading.fields import all_sections
from seqloom.config.loading.json_schema import SCHEMA_FILE, recipe_schema
from seqloom.config.loading.loader import load_bundled_recipe, load_recipe
from seqloom.config.loading.settings_list import describe_field
from seqloom.config.loading.toml import format_recipe, parse_toml
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import ConfigError

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
RECIPES = sorted(bundled_recipes())
DATA = {"train": {"kind": "tsv", "path": "pairs.tsv"}}


@cache
def stored_schema() -> dict[str, Any]:
    stored = files("seqloom").joinpath("recipes", SCHEMA_FILE).read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(stored)
    return schema


@cache
def validator() -> jsonschema_rs.Draft7Validator:
    return jsonschema_rs.Draft7Validator(stored_schema())


def errors(recipe: dict[str, Any]) -> list[str]:
    return [str(error) for error in validator().iter_errors(recipe)]


def tables_of(name: str) -> dict[str, Any]:
    return parse_toml(bundled_recipes()[name].read_bytes())


def test_the_stored_schema_is_current() -> None:
    """`seqloom schema > src/seqloom/recipes/recipe.schema.json` writes it."""
    assert stored_schema() == recipe_schema()


@pytest.mark.parametrize("name", RECIPES)
def test_a_bundled_recipe_names_the_schema_and_is_valid(name: str) -> None:
    first_line = bundled_recipes()[name].read_text(encoding="utf-8").partition("\n")[0]
    assert first_line == f"#:schema ./{SCHEMA_FILE}"
    assert errors(tables_of(name)) == []


@pytest.mark.parametrize("name", RECIPES)
def test_a_complete_recipe_with_all_defaults_is_valid(name: str) -> None:
    config = load_bundled_recipe(name).config
    assert errors(parse_toml(format_recipe(config).encode())) == []


@pytest.mark.parametrize("preset", sorted(bundled_presets()))
def test_a_recipe_with_a_preset_is_valid_without_a_model(preset: str) -> None:
    assert errors({"preset": preset, "data": DATA}) == []
    assert errors({"preset": preset, "data": DATA, "training": {"steps": 5}}) == []
    assert errors({"data": DATA, **parse_toml(bundled_presets()[preset].read_bytes())}) == []


@pytest.mark.parametrize(
    "recipe",
    [
        {"data": {"train": {"kind": "captions", "images": "a.zip", "captions": "c.txt"}}},
        {"data": {"train": [{"kind": "captions", "images": ["a", "b"], "captions": "c.txt"}]}},
        {"data": {**DATA, "test": []}},
        {"data": {**DATA, "expected": "none"}},
        {"data": DATA, "task": {"scores": ["bleu", "module:name"]}},
        {"data": DATA, "training": {"stopping": {"score": "module:name"}}},
        {"data": {"train": {"kind": "series", "path": "a", "columns": "x", "rows": [0, 9]}}},
    ],
)
def test_short_forms_none_and_metrics_of_your_own_are_valid(recipe: dict[str, Any]) -> None:
    assert errors(recipe) == []


@pytest.mark.parametrize(
    "recipe",
    [
        {"data": DATA, "presett": "small"},
        {"data": DATA, "preset": "smal"},
        {"data": DATA, "trainin": {"steps": 5}},
        {"data": DATA, "training": {"step": 5}},
        {"data": DATA, "task": {"scores": ["bleuu"]}},
        {"data": DATA, "training": {"steps": "5"}},
        {"data": DATA, "training": {"steps": 0}},
        {"data": DATA, "model": {"decoder": {"kind": "transformer", "widht": 8}}},
        {"data": DATA, "model": {"decoder": {"kind": "transfromer"}}},
        {"data": {"train": {"kind": "tsv"}}},
        {"data": {"train": {"kind": "tsv", "path": "a", "pth": "b"}}},
        {"data": {"train": []}},
        {"training": {"steps": 5}},
    ],
)
def test_mistyped_keys_and_values_are_rejected(recipe: dict[str, Any]) -> None:
    assert errors(recipe)


def test_the_page_states_the_messages_of_an_editor_and_of_the_command_line() -> None:
    page = PAGE.read_text(encoding="utf-8")
    recipe = {"preset": "small", "data": DATA, "training": {"step": 500}}
    [problem] = validator().iter_errors(recipe)
    assert problem.instance_path == ["training", "step"]
    assert f"`{problem.message}`" in page
    message = "training.step: there is no such setting; did you mean 'steps'?"
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_recipe(recipe)
    assert f"`{message}`" in page


def test_another_validator_accepts_all_bundled_recipes_and_finds_mistyped_keys() -> None:
    schema = jsonschema.Draft7Validator(stored_schema())
    for name in RECIPES:
        recipe = tables_of(name)
        assert schema.is_valid(recipe), name
        recipe["training"] = {**recipe.get("training", {}), "no_such_key": 1}
        [problem] = schema.iter_errors(recipe)
        assert [*problem.absolute_path] == ["training", "no_such_key"]


@pytest.mark.parametrize("name", ["demo", "robot", "wikitext2-lstm"])
def test_a_mistyped_key_is_rejected_in_every_table_of_a_recipe(name: str) -> None:
    def tables(value: Any) -> list[dict[str, Any]]:
        if isinstance(value, list):
            return [table for item in value for table in tables(item)]
        if not isinstance(value, dict):
            return []
        return [value, *(table for item in value.values() for table in tables(item))]

    recipe = tables_of(name)
    for table in tables(recipe):
        table["no_such_key"] = 1
        assert errors(recipe)
        del table["no_such_key"]
    assert errors(recipe) == []


def test_every_setting_has_its_description() -> None:
    schema = stored_schema()
    for path, section in all_sections(RunConfig):
        definition = schema if not path else schema["definitions"][section.__name__]
        for name in section.model_fields:
            description = definition["properties"][name]["description"]
            assert description == describe_field(section, name)
            assert description
