"""Introspection of the schema: which values and tables each key of a recipe accepts."""

from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from seqloom.config.extensions.section import ExtensionConfig, extension_section
from seqloom.config.schema.names import ExtensionName
from seqloom.config.schema.section import Section, kinds_of
from seqloom.extensions.registry import FORM, ExtensionError, is_extension, registered_names

KeyPath = tuple[str | int, ...]
"""Keys and list indices from the root of a recipe: ("data", "train", 0, "path")."""


@dataclass(frozen=True)
class FieldSpec:
    """The values that a key of a table accepts.

    sections:  maps each accepted `kind` of table to its section class. A section class without a
               `kind` is stored under "". Empty if the key does not accept tables
    has_kinds: True if several kinds of tables are accepted. pydantic then adds the `kind` of the
               table to the location of an error
    is_list:   True if the value is a list
    optional:  True if the setting can be switched off with "none"
    choices:   the accepted strings; empty if the type does not list them. The string FORM
               ("module:Name") stands for metrics that are defined outside seqloom
    """

    sections: dict[str, type[Section]]
    has_kinds: bool
    is_list: bool
    optional: bool
    choices: tuple[str, ...]

    def section_for(self, table: Any) -> type[Section] | None:
        """Return the section class (pydantic model) that describes this table.

        Returns None if the key does not accept tables. If the key accepts several kinds of tables,
        also returns None for a table whose `kind` is missing or invalid.
        """
        kind = table.get("kind") if isinstance(table, dict) else None
        extension = self.extension
        is_built_in = kind in self.sections and kind != FORM
        if (
            extension is not None
            and not is_built_in
            and isinstance(kind, str)
            and is_extension(extension.extension_point, kind)
        ):
            with suppress(ExtensionError):  # the validation of the section raises this error again
                return extension_section(extension, kind)
            return None
        if not self.has_kinds:
            return next(iter(self.sections.values()), None)
        return self.sections.get(kind) if isinstance(kind, str) else None

    @property
    def extension(self) -> type[ExtensionConfig] | None:
        """The section class of tables that select an extension (a user-defined class or function).

        None if the key does not accept extensions.
        """
        section = self.sections.get(FORM)
        return section if section is not None and issubclass(section, ExtensionConfig) else None

    @property
    def kinds(self) -> list[str]:
        """The values of `kind` that are allowed in the table.

        If extensions are allowed, the list contains the names of the registered extensions, and
        "module:Name" (FORM), which stands for all other extensions.
        """
        if self.extension is None:
            return [*self.sections]
        built_in = [kind for kind in self.sections if kind != FORM]
        return [*built_in, *registered_names(self.extension.extension_point), FORM]


def section_kind(section: type[Section] | Section) -> str:
    """Return the `kind` of a section; "" if it has none."""
    cls = section if isinstance(section, type) else type(section)
    return str(cls.model_fields["kind"].default) if "kind" in cls.model_fields else ""


def field_spec(field: FieldInfo) -> FieldSpec:
    """Return the values that a field accepts, derived from its type annotation."""
    types = _leaf_types(field.annotation)
    tables = [leaf for leaf in types if isinstance(leaf, type) and issubclass(leaf, Section)]
    sections = [kind for table in tables for kind in kinds_of(table)]
    literals = [leaf for leaf in types if get_origin(leaf) is Literal]
    return FieldSpec(
        sections={section_kind(section): section for section in sections},
        has_kinds=len(sections) > 1,
        is_list=_is_list(field.annotation),
        optional=type(None) in types,
        choices=tuple(word for literal in literals for word in get_args(literal))
        + ((FORM,) if ExtensionName in types else ()),
    )


def _is_list(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _is_list(get_args(annotation)[0])
    return get_origin(annotation) is tuple


def _leaf_types(annotation: Any) -> list[Any]:
    """Return the types that an annotation contains, without unions, tuples and `Annotated`.

    For example, `tuple[A | B, ...] | None` has the leaf types A, B and None.
    """
    origin = get_origin(annotation)
    if origin is Annotated:
        return _leaf_types(get_args(annotation)[0])
    if origin in (Union, UnionType, tuple):
        members = (member for member in get_args(annotation) if member is not Ellipsis)
        return [leaf for member in members for leaf in _leaf_types(member)]
    return [annotation]


def format_path(path: KeyPath) -> str:
    """Format a path as users write it: data.train[1].path"""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


@dataclass(frozen=True)
class SettingRef:
    """A reference to a setting whose value is neither a table nor a list of tables.

    path:    the path of the setting in the recipe
    section: the section that contains the setting
    name:    the name of the setting's field in `section`
    """

    path: KeyPath
    section: Section
    name: str


def list_setting_refs(section: Section, path: KeyPath = ()) -> list[SettingRef]:
    """Return references to all settings of a section and of the sections nested in it.

    The order is the one that TOML requires: the settings of a table come before its sub-tables. The
    first setting of a table is its `kind`.

    path: the path of `section` in the recipe
    """
    plain: list[SettingRef] = []
    nested: list[SettingRef] = []
    for name in field_names(type(section)):
        value = getattr(section, name)
        if isinstance(value, Section):
            nested += list_setting_refs(value, (*path, name))
        elif isinstance(value, tuple) and any(isinstance(item, Section) for item in value):
            for index, item in enumerate(value):
                nested += list_setting_refs(item, (*path, name, index))
        else:
            plain.append(SettingRef((*path, name), section, name))
    return plain + nested


@cache
def all_sections(
    section: type[Section], path: KeyPath = ()
) -> tuple[tuple[KeyPath, type[Section]], ...]:
    """Return this section class and all classes that can be nested in it, each with its path.

    Sections of different kinds at the same key have the same path. List indices are left out.
    """
    sections = [(path, section)]
    for name, field in section.model_fields.items():
        for nested in field_spec(field).sections.values():
            sections += all_sections(nested, (*path, name))
    return tuple(sections)


def field_names(section: type[Section]) -> list[str]:
    """Return the field names of a section, `kind` first."""
    return sorted(section.model_fields, key=lambda name: name != "kind")
