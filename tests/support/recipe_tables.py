"""All tables of the recipe schema, each with a recipe that contains it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from seqloom.config.extensions.section import ExtensionConfig
from seqloom.config.loading.error_messages import format_problems
from seqloom.config.loading.fields import field_spec, section_kind
from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.section import Section
from seqloom.core.errors import ConfigError

Table = dict[str, Any]


@dataclass(frozen=True)
class RecipeTable:
    """A table that a recipe can contain.

    path:       the path of the table as error messages print it; "" for the recipe itself
    section:    the class of the table
    is_default: True if the table has this class if it has no `kind`
    embed:      returns a recipe that contains the given table at `path`
    """

    path: str
    section: type[Section]
    is_default: bool
    embed: Callable[[Table], Table]

    def recipe(self, **settings: Any) -> Table:
        """Return a recipe whose table has the right `kind` and these settings."""
        kind = section_kind(self.section)
        return self.embed({**({"kind": kind} if kind else {}), **settings})

    def key(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


@cache
def recipe_tables() -> tuple[RecipeTable, ...]:
    """Return all tables whose settings the schema knows."""
    root = RecipeTable("", RunConfig, False, lambda table: table)
    return (root, *_nested(root))


def _nested(outer: RecipeTable) -> Iterator[RecipeTable]:
    for name, field in outer.section.model_fields.items():
        spec = field_spec(field)
        for section in spec.sections.values():
            if issubclass(section, ExtensionConfig):
                continue
            # A corpus can be written as a table, other lists cannot.
            is_list = spec.is_list and not spec.has_kinds

            def embed(table: Table, name: str = name, is_list: bool = is_list) -> Table:
                return outer.recipe(**{name: [table] if is_list else table})

            path = f"{outer.key(name)}[0]" if is_list else outer.key(name)
            defaults = field.default if isinstance(field.default, tuple) else (field.default,)
            is_default = [type(default) for default in defaults] == [section]
            table = RecipeTable(path, section, is_default, embed)
            yield table
            yield from _nested(table)


def cli_problems(recipe: Table) -> list[str]:
    """Return the lines that the command line prints about an invalid recipe."""
    try:
        load_recipe(recipe)
    except ConfigError as error:
        separator = format_problems([""])
        return str(error).split(separator)[1:]
    return []
