"""Renamed settings and values: recipes and run folders with the old names keep working."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seqloom.config.loading.fields import KeyPath, format_path
from seqloom.config.loading.toml import format_value

Tables = dict[str, Any]


@dataclass(frozen=True)
class Rename:
    """A setting that was renamed within its table, or whose values were renamed, or both.

    old:    the old key with its path, without list indices: "data.train.kind"
    new:    the new key with its path; equal to `old` if only values were renamed
    values: maps each old value to its new value
    """

    old: str
    new: str
    values: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert self.table == tuple(self.new.split(".")[:-1]), "a rename stays within its table"

    @property
    def table(self) -> tuple[str, ...]:
        return tuple(self.old.split(".")[:-1])

    @property
    def old_key(self) -> str:
        return self.old.split(".")[-1]

    @property
    def new_key(self) -> str:
        return self.new.split(".")[-1]


RENAMES: tuple[Rename, ...] = (
    Rename("task.form", "task.representation", {"steps": "differences"}),
    Rename("task.turn", "task.random_rotation"),
    *(
        rename
        for split in ("train", "dev", "test")
        for rename in (
            Rename(f"data.{split}.kind", f"data.{split}.kind", {"running-text": "long-text"}),
            Rename(f"data.{split}.companions", f"data.{split}.min_pedestrians"),
        )
    ),
    Rename("model.encoder.attention.merge", "model.encoder.attention.output_projection"),
    Rename("model.decoder.attention.merge", "model.decoder.attention.output_projection"),
    Rename("model.encoder.residual_gap", "model.encoder.remove_residual"),
    Rename("model.encoder.zoom", "model.encoder.crop_scale"),
    Rename("model.encoder.light", "model.encoder.color_jitter"),
    Rename(
        "model.decoder.handover",
        "model.decoder.initial_state",
        {"whole": "copy", "none": "zeros"},
    ),
    Rename("model.decoder.reads", "model.decoder.pooling", {"positions": "none"}),
    Rename("training.feeding", "training.decoder_input"),
    Rename("training.risk", "training.minimum_risk"),
    Rename("training.loop", "training.loop", {"recorded": "captured"}),
    Rename("training.averaging.kind", "training.averaging.kind", {"moving": "ema"}),
    Rename("decoding.length_exponent", "decoding.length_penalty"),
    Rename("decoding.one_line", "decoding.stop_at_newline"),
)


@dataclass(frozen=True)
class RenamedTables:
    """The tables of a recipe after old names were replaced.

    notes:    a message about each old name or value that was replaced
    problems: a message about each setting that has a value under its old and under its new name
    """

    tables: Tables
    notes: tuple[str, ...]
    problems: tuple[str, ...]


def apply_renames(tables: Tables, renames: Sequence[Rename] = RENAMES) -> RenamedTables:
    """Replace old names of settings and values. The given tables are not changed."""
    notes: list[str] = []
    problems: list[str] = []
    for rename in renames:
        replacement = _Replacement(rename, notes, problems)
        tables = replacement.apply(tables, rename.table, ())
    return RenamedTables(tables, tuple(dict.fromkeys(notes)), tuple(problems))


@dataclass(frozen=True)
class RenamedOverride:
    """The path and the value of a --set option after old names were replaced."""

    path: KeyPath
    value: Any
    notes: tuple[str, ...]


def rename_override(
    path: KeyPath,
    value: Any,
    renames: Sequence[Rename] = RENAMES,
) -> RenamedOverride:
    """Replace old names in the path and the value of a --set option."""
    nested = value
    for part in reversed(path):
        if isinstance(part, str):
            nested = {part: nested}
    renamed = apply_renames(nested, renames)
    new_path: list[str | int] = []
    new_value: Any = renamed.tables
    for part in path:
        if isinstance(part, str):
            [(part, new_value)] = new_value.items()
        new_path.append(part)
    return RenamedOverride((*new_path,), new_value, renamed.notes)


@dataclass(frozen=True)
class _Replacement:
    """Applies one rename to the tables of a recipe.

    notes:    list to which `apply` adds a message for each name or value that it replaces
    problems: list to which `apply` adds a message if the old and the new name are both set
    """

    rename: Rename
    notes: list[str]
    problems: list[str]

    def apply(self, value: Any, remaining: tuple[str, ...], path: KeyPath) -> Any:
        """Return a copy of `value` in which the old key and the old values are replaced.

        value:     the part of the recipe at `path`
        remaining: the keys that lead from `path` to the table with the renamed setting
        """
        if isinstance(value, list):
            return [self.apply(item, remaining, (*path, index)) for index, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        if not remaining:
            return self._rename_key(value, path)
        key, *rest = remaining
        if key not in value:
            return value
        return {**value, key: self.apply(value[key], (*rest,), (*path, key))}

    def _rename_key(self, table: Tables, path: KeyPath) -> Tables:
        old_key, new_key = self.rename.old_key, self.rename.new_key
        if old_key not in table:
            return table
        old = format_path((*path, old_key))
        new = format_path((*path, new_key))
        if old_key != new_key and new_key in table:
            self.problems.append(f"{old}: is the old name of {new}, which is set too; remove {old}")
            return {key: value for key, value in table.items() if key != old_key}
        old_value = table[old_key]
        new_value = old_value
        if isinstance(old_value, str) and old_value in self.rename.values:
            new_value = self.rename.values[old_value]
            self.notes.append(
                f"`{old} = {format_value(old_value)}` is now written "
                f"`{new} = {format_value(new_value)}`; the old form still works"
            )
        elif old_key != new_key:
            self.notes.append(f"`{old}` is now called `{new}`; the old name still works")
        return {
            (new_key if key == old_key else key): (new_value if key == old_key else value)
            for key, value in table.items()
        }
