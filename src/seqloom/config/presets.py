"""Presets: named settings of text, model and training that a recipe may build on.

    preset = "small"          all of the preset holds …
    [training]
    steps = 20_000            … but for what the recipe says itself

A table of the recipe is laid over the preset's key by key, unless it chooses another `kind`: then
it stands alone. What is built from a run folder later needs no preset: everything is written out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from seqloom.config.bundled import bundled_presets
from seqloom.config.problems import did_you_mean
from seqloom.config.toml import parse

KEY = "preset"

Tables = dict[str, Any]


@dataclass(frozen=True)
class Expanded:
    """A recipe with its preset under it.

    tables:    both together
    own:       the recipe's own, without the word `preset`
    overrides: those that are left when the one for the preset has been carried out
    """

    tables: Tables
    own: Tables
    overrides: Sequence[str]
    problems: list[str] = field(default_factory=list)


def expand(tables: Tables, overrides: Sequence[str]) -> Expanded:
    """Put the preset that the recipe or --set names under the recipe."""
    own = {key: value for key, value in tables.items() if key != KEY}
    chosen = [text for text in overrides if text.partition("=")[0].strip() == KEY]
    rest = [text for text in overrides if text not in chosen]
    name = chosen[-1].partition("=")[2].strip(" \"'") if chosen else tables.get(KEY)
    if name is None:
        return Expanded(own, own, rest)
    presets = bundled_presets()
    if name not in presets:
        return Expanded(own, own, rest, [_unknown(name, sorted(presets))])
    return Expanded(overlay(parse(presets[name].read_bytes()), own), own, rest)


def _unknown(name: object, known: list[str]) -> str:
    near = did_you_mean(name, known) if isinstance(name, str) else None
    hint = f"did you mean '{near}'?" if near else f"there are {', '.join(known)}"
    return f"{KEY}: there is no preset {name!r}; {hint}"


def overlay(under: Tables, over: Tables) -> Tables:
    """Tables laid over others. Where both have a table of the same kind, key by key."""
    result = dict(under)
    for key, value in over.items():
        below = under.get(key)
        result[key] = overlay(below, value) if _same_kind(below, value) else value
    return result


def _same_kind(under: Any, over: Any) -> TypeGuard[Tables]:
    """Are both tables, and does the upper one not choose another kind?"""
    if not (isinstance(under, dict) and isinstance(over, dict)):
        return False
    return bool(over.get("kind", under.get("kind")) == under.get("kind"))
