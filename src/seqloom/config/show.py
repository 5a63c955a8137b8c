"""A resolved recipe line by line: what is set to what, by whom, and what it means."""

from dataclasses import dataclass

from seqloom.config.load import Origin, Resolved
from seqloom.config.places import settings_of
from seqloom.config.section import Section
from seqloom.config.toml import format_value


@dataclass(frozen=True)
class Line:
    """One setting.

    key:     as a user writes it, after --set too
    value:   as TOML writes it; empty if the setting is left out
    origin:  the recipe, --set or the default
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
    return "" if value is None else format_value(value)


def _meaning(owner: Section, name: str) -> str:
    words = type(owner).__doc__ if name == "kind" else type(owner).model_fields[name].description
    return " ".join((words or "").split())
