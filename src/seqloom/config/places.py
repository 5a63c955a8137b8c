"""What may stand where in a recipe: the Section classes, read as a tree of places."""

from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from seqloom.config.section import Section

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Place:
    """One key of a table, and what its value may be.

    sections: the tables allowed here, by their `kind`; by "" if the table has none. Empty for a
              plain value
    tagged:   there is a choice between kinds, and pydantic writes the choice into its paths
    many:     a list of such values
    optional: it may be switched off by writing "none"
    choices:  the words allowed here, if only some are
    """

    sections: dict[str, type[Section]]
    tagged: bool
    many: bool
    optional: bool
    choices: tuple[str, ...]

    def section_for(self, table: Any) -> type[Section] | None:
        """The class that will read this table; None if that cannot be told."""
        if not self.tagged:
            return next(iter(self.sections.values()), None)
        kind = table.get("kind") if isinstance(table, dict) else None
        return self.sections.get(kind) if isinstance(kind, str) else None


def kind_of(section: type[Section] | Section) -> str:
    """The section's `kind`, or "" if it has none."""
    cls = section if isinstance(section, type) else type(section)
    return str(cls.model_fields["kind"].default) if "kind" in cls.model_fields else ""


def place_of(field: FieldInfo) -> Place:
    leaves = _leaves(field.annotation)
    sections = [leaf for leaf in leaves if isinstance(leaf, type) and issubclass(leaf, Section)]
    literals = [leaf for leaf in leaves if get_origin(leaf) is Literal]
    return Place(
        sections={kind_of(section): section for section in sections},
        tagged=len(sections) > 1,
        many=_is_list(field.annotation),
        optional=type(None) in leaves,
        choices=tuple(word for literal in literals for word in get_args(literal)),
    )


def _is_list(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _is_list(get_args(annotation)[0])
    return get_origin(annotation) is tuple


def _leaves(annotation: Any) -> list[Any]:
    """The plain types an annotation is put together from."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _leaves(get_args(annotation)[0])
    if origin in (Union, UnionType, tuple):
        parts = (part for part in get_args(annotation) if part is not Ellipsis)
        return [leaf for part in parts for leaf in _leaves(part)]
    return [annotation]


def written(path: Path) -> str:
    """A path as a user writes it: data.train[1].path"""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def settings_of(section: Section, path: Path = ()) -> list[tuple[Path, Section, str]]:
    """Every plain value of a section and the sections inside it: its path, its owner, its name.

    In the order TOML needs: a table's own values, `kind` first, before the tables inside it.
    """
    plain: list[tuple[Path, Section, str]] = []
    inside: list[tuple[Path, Section, str]] = []
    for name in ordered(type(section)):
        value = getattr(section, name)
        if isinstance(value, Section):
            inside += settings_of(value, (*path, name))
        elif isinstance(value, tuple) and any(isinstance(item, Section) for item in value):
            for index, item in enumerate(value):
                inside += settings_of(item, (*path, name, index))
        else:
            plain.append(((*path, name), section, name))
    return plain + inside


@cache
def sections_in(section: type[Section], path: Path = ()) -> tuple[tuple[Path, type[Section]], ...]:
    """Every kind of table a recipe may hold, with its path; a table's kinds share one path."""
    found = [(path, section)]
    for name, field in section.model_fields.items():
        for inner in place_of(field).sections.values():
            found += sections_in(inner, (*path, name))
    return tuple(found)


def ordered(section: type[Section]) -> list[str]:
    """The names of a section's settings, `kind` first."""
    return sorted(section.model_fields, key=lambda name: name != "kind")
