"""--set a.b=c: one setting changed from the command line."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from seqloom.config.places import Path, Place, kind_of, place_of, written
from seqloom.config.run import RunConfig
from seqloom.config.section import Section
from seqloom.config.toml import SyntaxProblem, parse_value

_KEY = re.compile(r"[a-z_]\w*(\.\w+|\[\d+\])*", re.IGNORECASE)
_RECIPE = Place({"": RunConfig}, tagged=False, many=False, optional=False, choices=())


@dataclass
class Overridden:
    """The recipe's tables after all overrides.

    changed:  the paths that were set
    problems: overrides that cannot be carried out
    notes:    settings of the recipe that had to go
    """

    tables: dict[str, Any]
    changed: list[Path] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def override(tables: dict[str, Any], overrides: Sequence[str]) -> Overridden:
    """Apply `a.b=c`, one after the other. The tables given are left as they are."""
    result = Overridden(tables)
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not _KEY.fullmatch(key.strip()):
            result.problems.append(
                f"--set {text}: must look like section.key=value, for example training.steps=500"
            )
            continue
        parts = re.findall(r"\w+", key)
        path = tuple(int(part) if part.isdecimal() else part for part in parts)
        try:
            change = _Change(text, parse_value(value.strip()))
            result.tables = change.inside(result.tables, _RECIPE, None, (), path)
            result.changed.append(change.path)
            result.notes += change.notes
        except (SyntaxProblem, LookupError) as error:
            result.problems.append(f"--set {text}: {error.args[0]}")
    return result


@dataclass
class _Change:
    """One override on its way down the tables."""

    text: str
    value: Any
    path: Path = ()
    notes: list[str] = field(default_factory=list)

    def inside(self, old: Any, place: Place | None, default: Any, here: Path, rest: Path) -> Any:
        """What stands `here` once the value has been put at `rest` of it."""
        if not rest:
            self.path = here
            return self.value
        if isinstance(old, list):
            index, rest = _entry(old, here, rest)
            new = self.inside(old[index], place, default, (*here, index), rest)
            return [*old[:index], new, *old[index + 1 :]]
        head, *tail = rest
        if isinstance(head, int):
            # One corpus may be written as a table; it is entry 0 all the same.
            if head == 0 and place is not None and place.many and tail:
                return self.inside(old, place, default, here, (*tail,))
            raise LookupError(f"{written(here)} is not a list of that many entries")
        if not isinstance(old, dict):
            raise LookupError(f"{written(here)} is not a table, so nothing inside it can be set")
        section = _section(old, place, default)
        known = None if section is None else section.model_fields.get(head)
        table = dict(old)
        if head == "kind" and place is not None and not tail:
            table = self._without_strangers(table, place.sections.get(str(self.value)), here)
        table[head] = self.inside(
            old.get(head, {}),
            None if known is None else place_of(known),
            None if known is None else known.default,
            (*here, head),
            (*tail,),
        )
        return table

    def _without_strangers(
        self, table: dict[str, Any], section: type[Section] | None, here: Path
    ) -> dict[str, Any]:
        """Another kind has other settings: those it does not know leave the table."""
        if section is None or table.get("kind") == self.value:
            return table
        gone = [key for key in table if key not in section.model_fields]
        if gone:
            self.notes.append(
                f"--set {self.text}: left out {', '.join(written((*here, key)) for key in gone)} "
                f"of the recipe, which kind '{self.value}' does not have"
            )
        return {key: value for key, value in table.items() if key not in gone}


def _section(table: dict[str, Any], place: Place | None, default: Any) -> type[Section] | None:
    """The class that will read this table, as far as can be told."""
    if place is None:
        return None
    if isinstance(default, tuple) and len(default) == 1:
        default = default[0]
    if isinstance(default, Section):
        table = {"kind": kind_of(default), **table}
    return place.section_for(table)


def _entry(entries: list[Any], here: Path, rest: Path) -> tuple[int, Path]:
    """Which entry of a list the path goes on to, and how it goes on from there."""
    name, (head, *tail) = written(here), rest
    if isinstance(head, int):
        if head >= len(entries):
            raise LookupError(f"{name} has {len(entries)} entries, numbered from 0")
        return head, (*tail,)
    if len(entries) == 1:
        return 0, rest
    raise LookupError(f"{name} has {len(entries)} entries; say which: {name}.0.{head}=…")
