"""What is wrong with a recipe, in the words and the paths of whoever wrote it."""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from seqloom.config.complete import UnknownKey
from seqloom.config.places import Path, Place, place_of, sections_in, written
from seqloom.config.run import RunConfig
from seqloom.config.section import Section
from seqloom.config.toml import format_value

EXAMPLES = {
    "data": '[data.train] with kind = "bundled", source = "de", target = "en"',
    "train": '[data.train] with kind = "parallel", source = "train.de", target = "train.en"',
    "source": 'source = "train.de"',
    "target": 'target = "train.en"',
    "path": 'path = "train.tsv"',
    "images": 'images = "photos.zip"',
    "captions": 'captions = "captions.txt"',
    "columns": 'columns = ["temperature"]',
    "observe": "observe = 8",
    "predict": "predict = 12",
    "pairs": 'pairs = ["en-de", "de-en"]',
    "task": 'task = "reverse"',
    "examples": "examples = 10000",
    "after": "after = 4000",
    "model": '[model.encoder] and [model.decoder], each with kind = "recurrent"',
    "encoder": '[model.encoder] with kind = "recurrent"',
    "decoder": '[model.decoder] with kind = "recurrent"',
    "training": "[training] with steps = 10000",
    "steps": "steps = 10000",
}

_WORDS = {
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "string_type": "must be a text in quotes",
    "tuple_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be at most {le:g}",
}


def listed(problems: Iterable[str]) -> str:
    return "".join(f"\n  {problem}" for problem in problems)


def did_you_mean(word: str, known: Sequence[str], likeness: float = 0.6) -> str | None:
    """The known word that looks most like this one, if it is like it to this degree."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=likeness)
    return close[0] if close else None


def unknown_key_problem(key: UnknownKey) -> str:
    name = str(key.path[-1])
    homes = _homes(name, key.path)
    # What is a setting elsewhere is hardly a slip of the pen, unless by one letter.
    near = did_you_mean(name, key.valid, likeness=0.8 if homes else 0.6)
    if homes and near:
        hint = f"did you mean '{near}', or {' or '.join(homes)}?"
    elif homes:
        hint = f"did you mean {' or '.join(homes)}?"
    elif near:
        hint = f"did you mean '{near}'?"
    else:
        hint = f"there are {', '.join(sorted(key.valid))}"
    return f"{written(key.path)}: there is no such setting; {hint}"


def _homes(name: str, path: Path) -> list[str]:
    """Where else a key of this name would mean something, if that is in few places only."""
    own = written(tuple(part for part in path if isinstance(part, str)))
    tables = sections_in(RunConfig)
    homes = {written((*home, name)) for home, section in tables if name in section.model_fields}
    return sorted(homes) if len(homes) <= 4 and own not in homes else []


def validation_problems(
    error: ValidationError, tables: dict[str, Any], unknown: Sequence[UnknownKey]
) -> list[str]:
    """One line for each problem pydantic found in these tables, as they were completed."""
    typos = {(*key.path[:-1], did_you_mean(str(key.path[-1]), key.valid) or "") for key in unknown}
    problems = []
    for detail in error.errors(include_url=False):
        path, place, section = _followed(detail["loc"], tables)
        # A mistyped key has been told already; that the right one is missing is the same news.
        if not (detail["type"] == "missing" and path in typos):
            problems += _problem(detail, path, place, section)
    return problems


def _followed(
    location: tuple[str | int, ...], tables: dict[str, Any]
) -> tuple[Path, Place | None, type[Section] | None]:
    """The user's own path: no names of union members, no index where a table stands for a list."""
    path: list[str | int] = []
    section: type[Section] | None = RunConfig
    place: Place | None = None
    value: Any = tables
    for part in location:
        if isinstance(part, int):
            if isinstance(value, tuple):
                value = value[part]
                path.append(part)
        elif section is None and place is not None and part in place.sections:
            section = place.sections[part]
            continue
        else:
            assert section is not None, f"{location} leads nowhere"
            field = section.model_fields[part]
            place = place_of(field)
            value = value.get(part, field.default) if isinstance(value, dict) else None
            path.append(part)
        section = None if place is None or place.tagged else place.section_for(value)
    return (*path,), place, section


def _problem(
    detail: ErrorDetails, path: Path, place: Place | None, section: type[Section] | None
) -> list[str]:
    kind, given = detail["type"], detail["input"]
    context = detail.get("ctx", {})
    if kind == "value_error":
        return [_anchored(line, path, section) for line in str(context["error"]).split("\n")]
    where = written(path)
    if kind == "missing":
        return [_missing(path, place)]
    if kind == "too_short":
        return [f"{where}: must not be empty"]
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        assert place is not None
        tag = given.get("kind") if isinstance(given, dict) else None
        return [_choice(f"{where}.kind", tag, [*place.sections])]
    if kind == "literal_error":
        assert place is not None
        return [_choice(where, given, place.choices)]
    words = _WORDS.get(kind, detail["msg"]).format(**context)
    return [f"{where or 'the recipe'}: {words}, not {_shown(given)}"]


def _anchored(line: str, path: Path, section: type[Section] | None) -> str:
    """A rule between settings may begin with the setting it is about: continue the path there."""
    match = re.match(r"(\w+(?:\.\w+)*): (.*)", line, re.DOTALL)
    if match and section is not None and match[1].split(".")[0] in section.model_fields:
        return f"{written((*path, *match[1].split('.')))}: {match[2]}"
    return f"{written(path) or 'the recipe'}: {line}"


def _missing(path: Path, place: Place | None) -> str:
    where, name = written(path), str(path[-1])
    if place is not None and place.choices:
        example = f"{name} = {format_value(place.choices[0])}"
    else:
        example = EXAMPLES[name]
    return f"{where}: is missing; for example {example}"


def _choice(where: str, given: Any, choices: Sequence[str]) -> str:
    near = did_you_mean(given, choices) if isinstance(given, str) else None
    words = " or ".join(f"'{choice}'" for choice in choices)
    if given is None:
        return f"{where}: is missing; it must be {words}"
    hint = f"; did you mean '{near}'?" if near else ""
    return f"{where}: must be {words}, not {_shown(given)}{hint}"


def _shown(value: Any) -> str:
    """A value as it was given, short enough for one line."""
    if isinstance(value, str):
        text = f"'{value}'"
    elif isinstance(value, bool | int | float | tuple | list | dict):
        text = format_value(value)
    else:
        text = repr(value)
    text = text.replace("\n", "\\n")
    return text if len(text) <= 60 else f"{text[:57]}…"
