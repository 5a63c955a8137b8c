"""Recipes with old names of settings and values keep working."""

from copy import deepcopy
from typing import Any

import pytest

from seqloom.config.loading import renamed
from seqloom.config.loading.fields import all_sections, field_spec
from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.renamed import RENAMES, Rename, apply_renames, rename_override
from seqloom.config.schema.recipe import RunConfig

EXAMPLE_RENAMES = (
    Rename("color", "colour", {"crimson": "red"}),
    Rename("shapes.kind", "shapes.kind", {"circle": "round"}),
    Rename("shapes.size", "shapes.side"),
)


def rename(tables: dict[str, Any]) -> renamed.RenamedTables:
    return apply_renames(tables, EXAMPLE_RENAMES)


def test_an_old_key_is_replaced_with_a_note() -> None:
    result = rename({"color": "blue"})
    assert result.tables == {"colour": "blue"}
    assert result.notes == ("`color` is now called `colour`; the old name still works",)
    assert result.problems == ()


def test_an_old_value_of_an_old_key_is_replaced_with_one_note() -> None:
    result = rename({"color": "crimson"})
    assert result.tables == {"colour": "red"}
    assert result.notes == (
        '`color = "crimson"` is now written `colour = "red"`; the old form still works',
    )


def test_old_names_are_replaced_in_tables_and_lists_of_tables() -> None:
    result = rename({"shapes": [{"kind": "circle"}, {"kind": "square", "size": 3}]})
    assert result.tables == {"shapes": [{"kind": "round"}, {"kind": "square", "side": 3}]}
    assert result.notes == (
        '`shapes[0].kind = "circle"` is now written `shapes[0].kind = "round"`; '
        "the old form still works",
        "`shapes[1].size` is now called `shapes[1].side`; the old name still works",
    )
    assert rename({"shapes": {"kind": "circle"}}).tables == {"shapes": {"kind": "round"}}


def test_new_names_are_left_alone() -> None:
    tables = {"colour": "red", "shapes": [{"kind": "round", "radius": 2}]}
    result = rename(tables)
    assert result.tables == tables
    assert result.notes == ()


def test_the_order_of_keys_and_the_given_tables_do_not_change() -> None:
    tables = {"speed": 1, "color": "blue", "shapes": [{"kind": "circle"}]}
    before = deepcopy(tables)
    assert list(rename(tables).tables) == ["speed", "colour", "shapes"]
    assert tables == before


def test_setting_the_old_and_the_new_name_is_a_problem() -> None:
    result = rename({"color": "red", "colour": "blue"})
    assert result.tables == {"colour": "blue"}
    assert result.problems == ("color: is the old name of colour, which is set too; remove color",)


def test_malformed_tables_are_left_to_validation() -> None:
    assert rename({"shapes": 5, "frame": []}).tables == {"shapes": 5, "frame": []}
    assert rename({"color": 5}).tables == {"colour": 5}


def test_old_names_in_overrides_are_replaced() -> None:
    def override(path: tuple[str | int, ...], value: Any) -> tuple[tuple[str | int, ...], Any]:
        result = rename_override(path, value, EXAMPLE_RENAMES)
        return result.path, result.value

    assert override(("color",), "crimson") == (("colour",), "red")
    assert override(("shapes", 1, "size"), 4) == (("shapes", 1, "side"), 4)
    assert override(("shapes", "kind"), "circle") == (("shapes", "kind"), "round")
    assert override(("shapes",), [{"size": 1}]) == (("shapes",), [{"side": 1}])
    assert override(("speed",), 2) == (("speed",), 2)


def test_loading_a_recipe_reports_old_names(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = (
        Rename("training.step_count", "training.steps"),
        Rename("decoding.beam_size", "decoding.width"),
    )
    monkeypatch.setattr(renamed.apply_renames, "__defaults__", (entries,))
    monkeypatch.setattr(renamed.rename_override, "__defaults__", (entries,))
    tables = {
        "data": {"train": {"kind": "bundled", "source": "de", "target": "en"}},
        "model": {"encoder": {"kind": "recurrent"}, "decoder": {"kind": "recurrent"}},
        "training": {"step_count": 10},
    }
    resolved = load_recipe(tables, ["decoding.beam_size=3"])
    assert resolved.config.training.steps == 10
    assert resolved.config.decoding.model_dump()["width"] == 3
    assert resolved.origins["training.steps"] == "recipe"
    assert resolved.origins["decoding.width"] == "--set"
    assert resolved.notes == (
        "`training.step_count` is now called `training.steps`; the old name still works",
        "`decoding.beam_size` is now called `decoding.width`; the old name still works",
    )


@pytest.mark.parametrize("entry", RENAMES, ids=lambda entry: f"{entry.old}->{entry.new}")
def test_a_rename_of_the_schema_replaces_the_old_name(entry: Rename) -> None:
    for old_value, new_value in {"x": "x", **entry.values}.items():
        table: Any = {entry.old_key: old_value}
        expected: Any = {entry.new_key: new_value}
        for key in reversed(entry.table):
            table, expected = {key: table}, {key: expected}
        result = apply_renames(table)
        assert result.tables == expected
        assert len(result.notes) == int(table != expected)


@pytest.mark.parametrize("entry", RENAMES, ids=lambda entry: f"{entry.old}->{entry.new}")
def test_the_schema_has_the_new_name_and_not_the_old_name(entry: Rename) -> None:
    fields = [
        section.model_fields for path, section in all_sections(RunConfig) if path == entry.table
    ]
    keys = {key for section in fields for key in section}
    assert entry.new_key in keys
    if entry.old_key != entry.new_key:
        assert entry.old_key not in keys
    specs = [field_spec(section[entry.new_key]) for section in fields if entry.new_key in section]
    choices = {choice for spec in specs for choice in spec.choices}
    assert choices >= set(entry.values.values())
    if entry.old_key == entry.new_key:
        assert not choices & set(entry.values)
