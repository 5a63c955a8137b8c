"""Overrides: --set a.b=c changes one setting of a recipe."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from seqloom.config.loading.fields import (
    FieldSpec,
    KeyPath,
    field_spec,
    format_path,
    section_kind,
)
from seqloom.config.loading.toml import TomlSyntaxError, parse_value
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.section import Section

_KEY = re.compile(r"[a-z_]\w*(\.\w+|\[\d+\])*", re.IGNORECASE)
_ROOT = FieldSpec({"": RunConfig}, has_kinds=False, is_list=False, optional=False, choices=())


@dataclass
class OverriddenTables:
    """The tables of a recipe after all overrides.

    paths:    the paths of the settings that overrides have changed
    problems: messages about overrides that cannot be applied
    notes:    messages about settings of the recipe that were removed
    """

    tables: dict[str, Any]
    paths: list[KeyPath] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def apply_overrides(tables: dict[str, Any], overrides: Sequence[str]) -> OverriddenTables:
    """Apply overrides of the form `a.b=c` in order. The given tables are not changed."""
    result = OverriddenTables(tables)
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not _KEY.fullmatch(key.strip()):
            result.problems.append(
                f"--set {text}: must have the form section.key=value, for example "
                "training.steps=500"
            )
            continue
        parts = re.findall(r"\w+", key)
        path = tuple(int(part) if part.isdecimal() else part for part in parts)
        try:
            override = _Override(text, parse_value(value.strip()))
            result.tables = override.apply(result.tables, _ROOT, None, (), path)
            result.paths.append(override.path)
            result.notes += override.notes
        except (TomlSyntaxError, LookupError) as error:
            result.problems.append(f"--set {text}: {error.args[0]}")
    return result


@dataclass
class _Override:
    """Applies one --set option.

    text:  the option as the user wrote it
    value: the new value
    path:  the path of the changed setting, with list indices; known after `apply`
    notes: messages about settings that were removed, because a new `kind` does not have them
    """

    text: str
    value: Any
    path: KeyPath = ()
    notes: list[str] = field(default_factory=list)

    def apply(
        self, old: Any, spec: FieldSpec | None, default: Any, path: KeyPath, remaining: KeyPath
    ) -> Any:
        """Return a copy of a part of the recipe in which the setting has the new value.

        For the setting a.b.c, if `path` is a, then `remaining` is b.c.

        old:       the part of the recipe to copy
        path:      path from the root of the recipe to this part
        remaining: path from this part to the setting
        spec:      describes the key at `path`; None if the schema has no such key
        default:   default value of this key; None if there is no default
        """
        if not remaining:
            self.path = path
            return self.value
        if isinstance(old, list):
            index, remaining = _list_entry(old, path, remaining)
            new = self.apply(old[index], spec, default, (*path, index), remaining)
            return [*old[:index], new, *old[index + 1 :]]
        key, *rest = remaining
        if isinstance(key, int):
            # A single corpus may be written as a table instead of a list. Index 0 refers to this
            # table.
            if key == 0 and spec is not None and spec.is_list and rest:
                return self.apply(old, spec, default, path, (*rest,))
            raise LookupError(f"{format_path(path)} is not a list, so it has no entry {key}")
        if not isinstance(old, dict):
            raise LookupError(f"{format_path(path)} is not a table, so it has no settings inside")
        section = _section_of(old, spec, default)
        field_info = None if section is None else section.model_fields.get(key)
        table = dict(old)
        if key == "kind" and spec is not None and spec.has_kinds and not rest:
            new_section = spec.section_for({"kind": self.value})
            table = self._remove_foreign_keys(table, new_section, path)
        table[key] = self.apply(
            old.get(key, {}),
            None if field_info is None else field_spec(field_info),
            None if field_info is None else field_info.default,
            (*path, key),
            (*rest,),
        )
        return table

    def _remove_foreign_keys(
        self, table: dict[str, Any], section: type[Section] | None, path: KeyPath
    ) -> dict[str, Any]:
        """Return the table without the keys that its new `kind` does not accept.

        section: the pydantic class of the new `kind`; None if there is no such `kind`
        """
        if section is None or table.get("kind") == self.value:
            return table
        foreign = [key for key in table if key not in section.model_fields]
        if foreign:
            keys = ", ".join(format_path((*path, key)) for key in foreign)
            self.notes.append(
                f"--set {self.text}: removed {keys} of the recipe, "
                f"which kind '{self.value}' does not have"
            )
        return {key: value for key, value in table.items() if key not in foreign}


def _section_of(
    table: dict[str, Any], spec: FieldSpec | None, default: Any
) -> type[Section] | None:
    """Return the pydantic class of a table; None if the schema has no class for this table.

    spec:    describes the key that holds the table; None if the schema has no such key
    default: default value of this key. A table without a `kind` gets the `kind` of the default
    """
    if spec is None:
        return None
    if isinstance(default, tuple) and len(default) == 1:
        default = default[0]
    if isinstance(default, Section):
        table = {"kind": section_kind(default), **table}
    return spec.section_for(table)


def _list_entry(entries: list[Any], path: KeyPath, remaining: KeyPath) -> tuple[int, KeyPath]:
    """Return the index of a list entry, and the path of the setting inside this entry.

    entries:   the list
    path:      the path of the list in the recipe
    remaining: the path of the setting relative to the list. It starts with the index of the entry.
               If the list has only one entry, the index may be missing
    """
    name, (key, *rest) = format_path(path), remaining
    if isinstance(key, int):
        if key >= len(entries):
            raise LookupError(
                f"{name} has no entry {key}; it has {len(entries)} entries, counted from 0"
            )
        return key, (*rest,)
    if len(entries) == 1:
        return 0, remaining
    raise LookupError(f"{name} has {len(entries)} entries; choose one, as in {name}.0.{key}=…")
