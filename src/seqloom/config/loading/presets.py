"""Presets: named settings of text, model and training that a recipe can build on.

    preset = "small"          uses all settings of the preset …
    [training]
    steps = 20_000            … except those that the recipe sets itself

A table of the recipe is merged key by key into the preset's table of the same name. If the two
tables have different values of `kind`, the recipe's table replaces the preset's table. The recipe
in a run folder contains all values, so it needs no preset.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from seqloom.config.loading.bundled import bundled_presets
from seqloom.config.loading.error_messages import closest_match
from seqloom.config.loading.toml import parse_toml

KEY = "preset"

Tables = dict[str, Any]


@dataclass(frozen=True)
class ExpandedRecipe:
    """A recipe merged into its preset.

    tables:        the merged tables
    recipe_tables: the tables of the recipe itself, without `preset`
    overrides:     the overrides except those that set `preset`
    problems:      messages about a preset that does not exist; empty if there are no problems
    """

    tables: Tables
    recipe_tables: Tables
    overrides: Sequence[str]
    problems: list[str] = field(default_factory=list)


def apply_preset(tables: Tables, overrides: Sequence[str]) -> ExpandedRecipe:
    """Merge a recipe into its preset. `--set preset=…` overrides the recipe's `preset`."""
    recipe_tables = {key: value for key, value in tables.items() if key != KEY}
    preset_overrides = [text for text in overrides if text.partition("=")[0].strip() == KEY]
    other_overrides = [text for text in overrides if text not in preset_overrides]
    name: Any
    if preset_overrides:
        name = preset_overrides[-1].partition("=")[2].strip(" \"'")
    else:
        name = tables.get(KEY)
    if name is None:
        return ExpandedRecipe(recipe_tables, recipe_tables, other_overrides)
    presets = bundled_presets()
    if name not in presets:
        problem = _unknown_preset(name, sorted(presets))
        return ExpandedRecipe(recipe_tables, recipe_tables, other_overrides, [problem])
    merged = merge_tables(parse_toml(presets[name].read_bytes()), recipe_tables)
    return ExpandedRecipe(merged, recipe_tables, other_overrides)


def _unknown_preset(name: object, presets: list[str]) -> str:
    match = closest_match(name, presets) if isinstance(name, str) else None
    hint = f"did you mean '{match}'?" if match else f"the presets are {', '.join(presets)}"
    return f"{KEY}: there is no preset {name!r}; {hint}"


def merge_tables(base: Tables, update: Tables) -> Tables:
    """Return `base` with the values of `update`.

    Tables of the same kind are merged key by key; all other values are replaced.
    """
    result = dict(base)
    for key, value in update.items():
        base_value = base.get(key)
        if _are_same_kind(base_value, value):
            result[key] = merge_tables(base_value, value)
        else:
            result[key] = value
    return result


def _are_same_kind(base: Any, update: Any) -> TypeGuard[Tables]:
    """True if both are tables and `update` does not set a different `kind`."""
    if not (isinstance(base, dict) and isinstance(update, dict)):
        return False
    return bool(update.get("kind", base.get("kind")) == base.get("kind"))
