"""Presets: named settings of text, model, training and decoding that a recipe can build on.

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
PRESET_LIMITS = (("low-resource", 100_000), ("small", 1_000_000), ("base", float("inf")))
"""Names of presets, each with the maximum number of training pairs that the preset suits."""

Tables = dict[str, Any]


@dataclass(frozen=True)
class ExpandedRecipe:
    """A recipe merged into its preset.

    tables:        the merged tables
    recipe_tables: the tables of the recipe itself, without `preset`
    preset_tables: the tables of the preset; empty if the recipe has no preset
    overrides:     the overrides except those that set `preset`
    problems:      messages about a preset that does not exist; empty if there are no problems
    """

    tables: Tables
    recipe_tables: Tables
    preset_tables: Tables
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
        return ExpandedRecipe(recipe_tables, recipe_tables, {}, other_overrides)
    presets = bundled_presets()
    if name not in presets:
        problem = _unknown_preset(name, sorted(presets))
        return ExpandedRecipe(recipe_tables, recipe_tables, {}, other_overrides, [problem])
    preset_tables = parse_toml(presets[name].read_bytes())
    merged = merge_tables(preset_tables, recipe_tables)
    return ExpandedRecipe(merged, recipe_tables, preset_tables, other_overrides)


def needs_preset(tables: Tables, overrides: Sequence[str]) -> bool:
    """True if the recipe is for translation and has neither a model nor a preset."""
    task = tables.get("task", {})
    kind = task.get("kind", "translation") if isinstance(task, dict) else None
    keys = {*tables, *(text.partition("=")[0].partition(".")[0].strip() for text in overrides)}
    return kind == "translation" and "data" in keys and not keys & {"model", KEY}


def preset_for(pairs: int) -> str:
    """Return the preset that suits a number of training pairs."""
    return next(name for name, limit in PRESET_LIMITS if pairs <= limit)


@dataclass(frozen=True)
class ScaledTables:
    """The tables of a recipe after `scale_warmup` has adapted the warm-up to the number of steps.

    notes: one message if the warm-up was changed; empty if it was not
    """

    tables: Tables
    notes: tuple[str, ...] = ()


def scale_warmup(recipe: ExpandedRecipe, tables: Tables) -> ScaledTables:
    """Return the tables with the warm-up scaled in proportion to the number of steps.

    The warm-up is scaled in two cases:

    - The warm-up comes from the preset, and the recipe or an override changes the preset's steps.
    - The warm-up comes from the recipe, and an override lowers the recipe's steps. If an override
      raises them, the warm-up is kept: the override may extend a finished run, whose warm-up is
      over.

    recipe: the recipe and its preset, without overrides
    tables: the recipe merged into its preset, with overrides
    """
    for base in (recipe.preset_tables, recipe.tables):
        base_steps, base_warmup = _steps_and_warmup(base)
        steps, warmup = _steps_and_warmup(tables)
        _, own_warmup = _steps_and_warmup(recipe.recipe_tables)
        is_preset = base is recipe.preset_tables
        is_given = warmup != base_warmup or (is_preset and own_warmup is not None)
        if is_given or not (base_steps and base_warmup and steps) or steps == base_steps:
            continue
        if not is_preset and steps > base_steps:
            continue
        scaled = min(max(1, round(base_warmup * steps / base_steps)), steps - 1)
        training = tables["training"]
        schedule = {**training["schedule"], "warmup": scaled}
        note = (
            f"training.schedule.warmup is {scaled:,} instead of {base_warmup:,}, in proportion to "
            f"{steps:,} instead of {base_steps:,} steps"
        )
        return ScaledTables({**tables, "training": {**training, "schedule": schedule}}, (note,))
    return ScaledTables(tables)


def _steps_and_warmup(tables: Tables) -> tuple[int | None, int | None]:
    """Return training.steps and training.schedule.warmup; None where they are not set."""
    training = tables.get("training")
    if not isinstance(training, dict):
        return None, None
    schedule = training.get("schedule")
    steps = training.get("steps")
    warmup = schedule.get("warmup") if isinstance(schedule, dict) else None
    return (
        steps if isinstance(steps, int) and steps > 0 else None,
        warmup if isinstance(warmup, int) else None,
    )


def _unknown_preset(name: object, presets: list[str]) -> str:
    match = closest_match(name, presets) if isinstance(name, str) else None
    hint = f"did you mean '{match}'?" if match else f"the presets are {', '.join(presets)}"
    return f"{KEY}: there is no preset {name!r}; {hint}"


def merge_tables(base: Tables, update: Tables) -> Tables:
    """Return `base` with the values of `update`.

    If both have a table under the same key, the two tables are merged in the same way. Otherwise,
    or if `update` sets a different `kind`, the value of `update` replaces that of `base`.
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
