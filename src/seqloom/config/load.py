"""TOML and --set to a RunConfig, or all problems at once with a hint for each."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from seqloom.config import places
from seqloom.config.bundled import bundled_presets, bundled_recipes
from seqloom.config.complete import UnknownKey, complete, for_labels, without_source
from seqloom.config.overrides import override
from seqloom.config.places import settings_of, written
from seqloom.config.presets import expand
from seqloom.config.problems import (
    did_you_mean,
    listed,
    unknown_key_problem,
    validation_problems,
)
from seqloom.config.run import RunConfig
from seqloom.config.toml import SyntaxProblem, format_section, parse
from seqloom.core.errors import ConfigError, NotFoundError

Origin = Literal["recipe", "--set", "preset", "default"]


@dataclass(frozen=True)
class Resolved:
    """A whole recipe, and where each of its values comes from.

    origins: by key, as a user writes it (data.train[0].path)
    notes:   settings of the recipe that an override made meaningless
    """

    config: RunConfig
    origins: dict[str, Origin]
    notes: tuple[str, ...] = ()


def load_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Resolved:
    """Read a recipe from a file."""
    path = Path(path)
    if not path.is_file():
        raise NotFoundError(f"{path}: {_not_a_file(path)}")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise NotFoundError(f"{path}: cannot be read: {error.strerror}") from error
    return read_recipe(data, overrides, str(path))


def find_recipe(name: str, overrides: Sequence[str] = ()) -> Resolved:
    """Read a recipe from a file or, if there is no such file, the bundled one of that name."""
    if not Path(name).is_file() and name in bundled_recipes():
        return bundled_recipe(name, overrides)
    return load_recipe(Path(name), overrides)


def bundled_recipe(name: str, overrides: Sequence[str] = ()) -> Resolved:
    """Read a recipe that comes with seqloom."""
    bundled = bundled_recipes()
    if name not in bundled:
        known = ", ".join(sorted(bundled)) or "none"
        raise NotFoundError(f"{name}: there is no such bundled recipe; there are {known}")
    return read_recipe(bundled[name].read_bytes(), overrides, name)


def _not_a_file(path: Path) -> str:
    if path.is_dir():
        return "is a folder; give the recipe's file, which ends in .toml"
    names = sorted(bundled_recipes())
    beside = sorted(file.name for file in path.parent.glob("*.toml"))
    near = did_you_mean(path.stem, names)
    if path.name in names or path.stem in names:
        return f"there is no such file; for the bundled recipe, write {path.stem}"
    if path.stem in bundled_presets() and f"{path.stem}.toml" not in beside:
        return (
            f"there is no such file; {path.stem} is a preset, on which a recipe builds by "
            f'`preset = "{path.stem}"`, or by --set preset={path.stem}'
        )
    if close := did_you_mean(path.name, beside):
        return f"there is no such file; did you mean {path.parent / close}?"
    if near:
        return f"there is no such file; did you mean the bundled recipe {near}?"
    known = f"; the bundled recipes are {', '.join(names)}" if names else ""
    return f"there is no such file{known}"


def read_recipe(data: bytes, overrides: Sequence[str], name: str) -> Resolved:
    """A recipe from the text of its file; errors call it `name`."""
    try:
        tables = parse(data)
    except SyntaxProblem as error:
        raise ConfigError(f"{name} cannot be used:{listed([str(error)])}") from error
    return resolve(tables, overrides, name)


def resolve(
    tables: dict[str, Any], overrides: Sequence[str] = (), name: str = "recipe"
) -> Resolved:
    """Tables as TOML gives them, with a preset and overrides, to a checked RunConfig."""
    expanded = expand(tables, overrides)
    changed = override(expanded.tables, expanded.overrides)
    unknown: list[UnknownKey] = []
    ready = complete(for_labels(without_source(changed.tables)), RunConfig, None, (), unknown)
    problems = [
        *expanded.problems,
        *changed.problems,
        *(unknown_key_problem(key) for key in unknown),
    ]
    config = None
    try:
        # Strict: "100" is a text and true is no number. Lists became tuples on the way.
        config = RunConfig.model_validate(ready, strict=True)
    except ValidationError as error:
        problems += validation_problems(error, ready, unknown)
    if problems or config is None:
        raise ConfigError(f"{name} cannot be used:{listed(problems)}")
    origins = _origins(config, expanded.own, changed.tables, changed.changed)
    return Resolved(config, origins, tuple(changed.notes))


def dump(config: RunConfig) -> str:
    """The whole recipe as TOML, every default written out: resolve(parse(dump(c))) == c."""
    return format_section(config)


def _origins(
    config: RunConfig,
    own: dict[str, Any],
    tables: dict[str, Any],
    changed: Sequence[places.Path],
) -> dict[str, Origin]:
    """own: what the recipe says itself; tables: the same over its preset, after --set."""
    origins: dict[str, Origin] = {}
    for full, _, _ in settings_of(config):
        path, given = own_path(full, tables)
        overridden = any(path[: len(prefix)] == prefix for prefix in changed)
        said = own_path(full, own)[1]
        origins[written(path)] = (
            "--set"
            if overridden and given
            else "recipe"
            if given and said
            else "preset"
            if given
            else "default"
        )
    return origins


def own_path(path: places.Path, tables: dict[str, Any]) -> tuple[places.Path, bool]:
    """The path as these tables have it, and whether they hold anything there."""
    own: list[str | int] = []
    value: Any = tables
    given = True
    for part in path:
        if isinstance(part, int):
            if isinstance(value, dict):
                continue  # one corpus, written as a table
            given = given and isinstance(value, list) and part < len(value)
        else:
            given = given and isinstance(value, dict) and part in value
        own.append(part)
        value = value[part] if given else None
    return (*own,), given
