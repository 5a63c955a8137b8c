"""Loads and checks recipes, which are given as a file, a name of a bundled recipe or a
dictionary."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from seqloom.config.loading.bundled import bundled_presets, bundled_recipes
from seqloom.config.loading.defaults import (
    UnknownKey,
    apply_label_defaults,
    apply_language_model_defaults,
    fill_defaults,
)
from seqloom.config.loading.error_messages import (
    closest_match,
    format_problems,
    unknown_key_problem,
    validation_problems,
)
from seqloom.config.loading.fields import KeyPath, format_path, list_setting_refs
from seqloom.config.loading.overrides import apply_overrides
from seqloom.config.loading.presets import KEY as PRESET
from seqloom.config.loading.presets import (
    apply_preset,
    needs_preset,
    preset_for,
    scale_warmup,
)
from seqloom.config.loading.recipe_files import not_a_recipe, saved_dataset_recipe
from seqloom.config.loading.toml import TomlSyntaxError, parse_toml
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import ConfigError, NotFoundError
from seqloom.core.file_kinds import recognise

Origin = Literal["recipe", "--set", "preset", "parent", "default"]
"""Where the value of a setting comes from."""
RECIPE_FILE = "config.toml"
"""Name of the recipe in a run folder."""
CountPairs = Callable[[DataConfig], int]
"""A function that returns the number of training pairs of a recipe."""


@dataclass(frozen=True)
class ResolvedRecipe:
    """A complete recipe, and where each of its values comes from.

    config:  the checked recipe with all defaults
    origins: maps the key of each value, as users write it (data.train[0].path), to the origin of
             the value, for example "preset"
    notes:   messages about automatic changes, for example a chosen preset
    """

    config: RunConfig
    origins: dict[str, Origin]
    notes: tuple[str, ...] = ()


def load_recipe(
    source: str | Path | Mapping[str, Any],
    overrides: Sequence[str] = (),
    name: str | None = None,
    count_pairs: CountPairs | None = None,
) -> ResolvedRecipe:
    """Load and check a recipe.

    source:      the path of a TOML file or of a run folder, the name of a bundled recipe such as
                 "demo", or the tables of a recipe as a dictionary. A file takes precedence over a
                 bundled recipe
    overrides:   settings to change, of the form "training.steps=500"
    name:        name of the recipe in error messages. Default: the path of the file, or "recipe"
                 for a dictionary. Not used for bundled recipes and run folders
    count_pairs: function that counts the training pairs of a recipe. It is called for a translation
                 recipe without [model] and without preset: the number of pairs determines the
                 preset. None: such a recipe is an error

    Raises NotFoundError if there is no such recipe. Raises ConfigError if the recipe is not valid;
    its message lists all problems.
    """
    if isinstance(source, Mapping):
        return _resolve(dict(source), overrides, name or "recipe", count_pairs)
    if (Path(source) / RECIPE_FILE).is_file():
        return load_run_recipe(Path(source) / RECIPE_FILE, overrides)
    recipe = read_tables(source, name)
    return _resolve(recipe.tables, overrides, recipe.name, count_pairs)


@dataclass(frozen=True)
class RecipeTables:
    """A recipe as it was read: not checked, and without its preset, overrides and defaults.

    tables: the TOML tables of the recipe
    name:   name of the recipe in error messages
    """

    tables: dict[str, Any]
    name: str


def read_tables(source: str | Path | Mapping[str, Any], name: str | None = None) -> RecipeTables:
    """Read the tables of a recipe.

    source: the path of a TOML file or of a run folder, the name of a bundled recipe, or the tables
            themselves
    name:   name of the recipe in error messages. Default: the path of the file, or "recipe"
    """
    if isinstance(source, Mapping):
        return RecipeTables(dict(source), name or "recipe")
    path = Path(source)
    if (path / RECIPE_FILE).is_file():
        path = path / RECIPE_FILE
    if not path.is_file():
        bundled = bundled_recipes()
        if str(source) in bundled:
            return RecipeTables(_parse(bundled[str(source)].read_bytes(), str(source)), str(source))
        raise NotFoundError(f"{path}: {_missing_file_problem(path)}")
    data = _read_bytes(path)
    if problem := not_a_recipe(path, data):
        raise ConfigError(f"{path}: {problem}")
    return RecipeTables(_parse(data, name or str(path)), name or str(path))


def load_run_recipe(path: Path, overrides: Sequence[str] = ()) -> ResolvedRecipe:
    """Load the recipe that a run folder stores."""
    return _resolve(_parse(_read_bytes(path), str(path)), overrides, str(path))


def load_bundled_recipe(name: str, overrides: Sequence[str] = ()) -> ResolvedRecipe:
    """Load a recipe that comes with seqloom, even if there is a file of the same name."""
    bundled = bundled_recipes()
    if name not in bundled:
        names = ", ".join(sorted(bundled)) or "none"
        raise NotFoundError(
            f"{name}: there is no such bundled recipe; the bundled recipes are {names}"
        )
    return _resolve(_parse(bundled[name].read_bytes(), name), overrides, name)


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise NotFoundError(f"{path}: cannot be read: {error.strerror}") from error


def _missing_file_problem(path: Path) -> str:
    if path.is_dir():
        if offer := saved_dataset_recipe(path):
            return offer
        kind = recognise(path)
        return (
            f"is {kind.name if kind else 'a folder'}; give a recipe, which is a file that ends in "
            ".toml, or a run folder"
        )
    names = sorted(bundled_recipes())
    files_beside = sorted(file.name for file in path.parent.glob("*.toml"))
    similar_name = closest_match(path.stem, names)
    if path.name in names or path.stem in names:
        return f"there is no such file; for the bundled recipe, write {path.stem}"
    if path.stem in bundled_presets() and f"{path.stem}.toml" not in files_beside:
        return (
            f"there is no such file; {path.stem} is a preset, which a recipe uses with "
            f'`preset = "{path.stem}"`, or with --set preset={path.stem}'
        )
    if similar_file := closest_match(path.name, files_beside):
        return f"there is no such file; did you mean {path.parent / similar_file}?"
    if similar_name:
        return f"there is no such file; did you mean the bundled recipe {similar_name}?"
    hint = f"; the bundled recipes are {', '.join(names)}" if names else ""
    return f"there is no such file{hint}"


def _parse(data: bytes, name: str) -> dict[str, Any]:
    try:
        return parse_toml(data)
    except TomlSyntaxError as error:
        raise ConfigError(f"{name} cannot be used:{format_problems([str(error)])}") from error


def _resolve(
    tables: dict[str, Any],
    overrides: Sequence[str],
    name: str,
    count_pairs: CountPairs | None = None,
) -> ResolvedRecipe:
    """Complete the tables of a recipe, and validate them.

    The preset, the overrides and the defaults are applied.
    If a translation recipe has neither a model nor a preset, `count_pairs` counts its training
    pairs, and their number determines the preset.
    """
    if count_pairs is None or not needs_preset(tables, overrides):
        return _resolve_with_preset(tables, overrides, name)
    # Any preset completes the recipe, so that its [data] section can be checked and counted.
    draft = _resolve_with_preset({**tables, "preset": "tiny"}, overrides, name)
    pairs = count_pairs(draft.config.data)
    preset = preset_for(pairs)
    resolved = _resolve_with_preset({**tables, "preset": preset}, overrides, name)
    note = (
        f"there is no [model], so this recipe uses the preset '{preset}', which suits "
        f'{pairs:,} training pairs; to choose another one, write preset = "NAME" at its start'
    )
    return replace(resolved, notes=(note, *resolved.notes))


def _resolve_with_preset(
    tables: dict[str, Any], overrides: Sequence[str], name: str
) -> ResolvedRecipe:
    expanded = apply_preset(tables, overrides)
    overridden = apply_overrides(expanded.tables, expanded.overrides)
    scaled = scale_warmup(expanded, overridden.tables)
    unknown: list[UnknownKey] = []
    complete = fill_defaults(
        apply_label_defaults(apply_language_model_defaults(scaled.tables)),
        RunConfig,
        None,
        (),
        unknown,
    )
    problems = [
        *expanded.problems,
        *overridden.problems,
        *(unknown_key_problem(_with_preset_key(key)) for key in unknown),
    ]
    config = None
    try:
        # Strict mode does not accept the string "100" or the value true as a number, or a list as a
        # tuple. `fill_defaults` has converted lists to tuples.
        config = RunConfig.model_validate(complete, strict=True)
    except ValidationError as error:
        problems += validation_problems(error, complete, unknown)
    if problems or config is None:
        raise ConfigError(f"{name} cannot be used:{format_problems(problems)}")
    origins = _origins(config, expanded.recipe_tables, overridden.tables, overridden.paths)
    return ResolvedRecipe(config, origins, (*overridden.notes, *scaled.notes))


def _with_preset_key(key: UnknownKey) -> UnknownKey:
    """Add `preset` to the valid keys that the error message about an unknown key suggests.

    This applies only to an unknown key at the top level of the recipe. `preset` is valid there,
    although it is not a field of `RunConfig`. Other unknown keys are returned unchanged.
    """
    return replace(key, valid=(PRESET, *key.valid)) if len(key.path) == 1 else key


def _origins(
    config: RunConfig,
    recipe_tables: dict[str, Any],
    final_tables: dict[str, Any],
    overridden_paths: Sequence[KeyPath],
) -> dict[str, Origin]:
    """Map each key of the recipe to the origin of its value: "default", "--set", "recipe" or
    "preset". A key has the form in which users write it, for example data.train[0].path.

    config:           the complete recipe
    recipe_tables:    the recipe without its preset
    final_tables:     the recipe merged into its preset, with the overrides applied
    overridden_paths: the paths that --set changed
    """
    origins: dict[str, Origin] = {}
    for ref in list_setting_refs(config):
        path, is_given = written_path(ref.path, final_tables)
        is_overridden = any(path[: len(prefix)] == prefix for prefix in overridden_paths)
        _, is_in_recipe = written_path(ref.path, recipe_tables)
        origin: Origin
        if not is_given:
            origin = "default"
        elif is_overridden:
            origin = "--set"
        elif is_in_recipe:
            origin = "recipe"
        else:
            origin = "preset"
        origins[format_path(path)] = origin
    return origins


def written_path(path: KeyPath, tables: dict[str, Any]) -> tuple[KeyPath, bool]:
    """Return the path of a setting as users write it, and whether the tables contain the setting.

    In a recipe, a list of one corpus can be written as a single corpus without an index. The path
    data.train[0].path is then written as data.train.path.

    path:   path of the setting in the complete recipe
    tables: tables of the recipe, before validation
    """
    written: list[str | int] = []
    value: Any = tables
    exists = True
    for part in path:
        if isinstance(part, int):
            if isinstance(value, dict):
                continue
            exists = exists and isinstance(value, list) and part < len(value)
        else:
            exists = exists and isinstance(value, dict) and part in value
        written.append(part)
        value = value[part] if exists else None
    return (*written,), exists
