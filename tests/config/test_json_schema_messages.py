"""The JSON Schema of recipes rejects mistyped keys and values in the words of the command line."""

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from seqloom.config.loading.error_messages import NO_SUCH_SETTING, suggest_key
from seqloom.config.loading.fields import format_path, section_kind
from seqloom.config.loading.json_schema import SCHEMA_FILE
from seqloom.config.loading.misspellings import find_misspelt
from seqloom.config.loading.presets import KEY as PRESET
from seqloom.config.loading.renamed import RENAMES
from support.recipe_tables import RecipeTable, Table, cli_problems, recipe_tables

TABLES = recipe_tables()
ALL_KEYS = {name for table in TABLES for name in table.section.model_fields}
OLD_KEYS = {rename.old_key for rename in RENAMES}


STORED = files("seqloom").joinpath("recipes", SCHEMA_FILE).read_text(encoding="utf-8")
SCHEMA = json.loads(STORED)
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)


def schema_messages(recipe: Table) -> dict[str, str]:
    """Return the messages of the schema about a recipe, by the path of the key."""
    return {
        format_path((*error.absolute_path,)): error.schema["errorMessage"]
        for error in VALIDATOR.iter_errors(recipe)
        if isinstance(error.schema, dict) and "errorMessage" in error.schema
    }


def cli_message(recipe: Table, key: str) -> str:
    """Return the message of the command line about a key."""
    [line] = [line for line in cli_problems(recipe) if line.startswith(f"{key}: ")]
    return line.removeprefix(f"{key}: ")


def keys_of(table: RecipeTable) -> list[str]:
    return [*([] if table.path else [PRESET]), *table.section.model_fields]


def misspell(name: str) -> str:
    """Return a word that is one edit away from a key and is not a key itself."""
    return f"{name[:-1]}{name[-1]}{name[-1]}"


def test_a_mistyped_key_gets_the_same_message_in_every_table() -> None:
    assert len(TABLES) > 150
    for table in TABLES:
        name = misspell(keys_of(table)[-1])
        recipe = table.recipe(**{name: 1})
        message = schema_messages(recipe)[table.key(name)]
        assert message == suggest_key(keys_of(table)[-1])
        assert message == cli_message(recipe, table.key(name))


def test_a_mistyped_key_gets_the_same_message_in_every_table_of_the_default_kind() -> None:
    tables = [table for table in TABLES if table.is_default and section_kind(table.section)]
    assert len(tables) > 10
    for table in tables:
        name = misspell(keys_of(table)[-1])
        recipe = table.embed({name: 1})
        assert schema_messages(recipe)[table.key(name)] == cli_message(recipe, table.key(name))


@st.composite
def edits(draw: st.DrawFn, name: str) -> str:
    position = draw(st.integers(0, len(name)))
    inserted = draw(st.sampled_from(["", "e", "s", "_", "2", "é"]))
    return name[:position] + inserted + name[position + draw(st.integers(0, 1)) :]


@given(st.sampled_from(TABLES), st.data())
def test_an_edited_key_gets_the_same_message(table: RecipeTable, data: st.DataObject) -> None:
    name = data.draw(edits(data.draw(st.sampled_from(keys_of(table)))))
    assume(name and name not in {*keys_of(table), *OLD_KEYS})
    recipe = table.recipe(**{name: 1})
    message = schema_messages(recipe)[table.key(name)]
    expected = cli_message(recipe, table.key(name))
    if name in ALL_KEYS:  # the message may depend on the path, and definitions are shared
        assert message in (expected, NO_SUCH_SETTING)
    else:
        assert message == expected


@pytest.mark.parametrize(
    ("recipe", "key", "message"),
    [
        ({"model": {"recoder": 1}}, "model.recoder", suggest_key("decoder")),
        (
            {"data": {"train": {"kind": "frames", "labes": 1}}},
            "data.train.labes",
            suggest_key("labels"),
        ),
        ({"decoding": {"kind": "sample", "top_o": 1}}, "decoding.top_o", suggest_key("top_k")),
        ({"presett": "small"}, "presett", suggest_key("preset")),
        (
            {"data": {"expected": {"file": 1}}},
            "data.expected.file",
            f"{NO_SUCH_SETTING}; did you mean 'files', or data.expected.files.file?",
        ),
    ],
)
def test_a_key_that_is_similar_to_several_keys_gets_the_same_message(
    recipe: Table, key: str, message: str
) -> None:
    assert schema_messages(recipe)[key] == message
    assert cli_message(recipe, key) == message


def test_a_mistyped_key_inside_a_table_without_kind_gets_the_same_message() -> None:
    score = {"kind": "additive", "witdh": 8}
    recipe = {"model": {"decoder": {"kind": "recurrent", "attention": {"score": score}}}}
    key = "model.decoder.attention.score.witdh"
    assert schema_messages(recipe)[key] == cli_message(recipe, key) == suggest_key("width")


@given(st.sampled_from(TABLES), st.text("abelnst_", min_size=1) | st.sampled_from(sorted(ALL_KEYS)))
def test_any_other_key_gets_the_start_of_the_message(table: RecipeTable, name: str) -> None:
    assume(name not in {*keys_of(table), *OLD_KEYS})
    recipe = table.recipe(**{name: 1})
    message = schema_messages(recipe)[table.key(name)]
    assert cli_message(recipe, table.key(name)).startswith(message)
    if find_misspelt(name, keys_of(table)) is None:
        assert message == NO_SUCH_SETTING


def test_an_invalid_kind_gets_the_start_of_the_message() -> None:
    tables = [table for table in TABLES if table.is_default and section_kind(table.section)]
    for table in tables:
        for value in ("no-such-kind", 7):
            recipe = table.embed({"kind": value})
            message = schema_messages(recipe).get(table.key("kind"))
            if message is not None:  # a table of which there is only one kind has no message
                assert cli_message(recipe, table.key("kind")).startswith(f"{message}, not ")


def invalid_value(setting: dict[str, Any]) -> Any:
    return "no-such-value" if "enum" in setting or setting["type"] != "string" else 7


def test_an_invalid_value_gets_the_start_of_the_message() -> None:
    checked = 0
    for table in TABLES:
        definition = SCHEMA["definitions"][table.section.__name__] if table.path else SCHEMA
        settings = {
            name: invalid_value(setting)
            for name, setting in definition["properties"].items()
            if "errorMessage" in setting
        }
        recipe = table.recipe(**settings)
        messages = schema_messages(recipe)
        problems = cli_problems(recipe)
        for name in settings:
            start = f"{table.key(name)}: {messages[table.key(name)]}, not "
            assert any(line.startswith(start) for line in problems)
            checked += 1
    assert checked > 100


def test_the_schema_stays_small() -> None:
    """An editor reads and compiles the whole file."""
    assert len(STORED) < 450_000
