"""A resolved recipe line by line: what is set to what, by whom, and what it means."""

import ast
import inspect
import textwrap
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from seqloom.config.load import Origin, Resolved
from seqloom.config.places import settings_of
from seqloom.config.section import Section
from seqloom.config.toml import format_value


@dataclass(frozen=True)
class Line:
    """One setting.

    key:     as a user writes it, after --set too
    value:   as TOML writes it; empty if the setting is left out
    origin:  the recipe, --set, the preset or the default
    meaning: the words beside it in the schema; of a `kind`, those of its section
    """

    key: str
    value: str
    origin: Origin
    meaning: str


def lines(resolved: Resolved) -> list[Line]:
    """Every setting of the recipe, in the order of the schema."""
    settings = settings_of(resolved.config)
    return [
        Line(key, _value(owner, name), origin, _meaning(owner, name))
        for (key, origin), (_, owner, name) in zip(resolved.origins.items(), settings, strict=True)
    ]


def _value(owner: Section, name: str) -> str:
    value = getattr(owner, name)
    left_out = value is None and type(owner).model_fields[name].default is None
    return "" if left_out else format_value(value)


def _meaning(owner: Section, name: str) -> str:
    words = type(owner).__doc__ if name == "kind" else _words_under(type(owner)).get(name)
    return " ".join((words or "").split())


@cache
def _words_under(section: type[Section]) -> dict[str, str]:
    """The string under each setting of a section, read from its source.

    pydantic would collect them too, but for every class at every start: a fifth of the time that
    a wrong recipe takes to be answered.
    """
    words: dict[str, str] = {}
    for parent in reversed(section.__mro__):
        if issubclass(parent, Section):
            (definition,) = ast.parse(textwrap.dedent(inspect.getsource(parent))).body
            assert isinstance(definition, ast.ClassDef)
            for setting, below in pairwise(definition.body):
                match setting, below:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str(text))),
                    ):
                        words[name] = text
    return words
