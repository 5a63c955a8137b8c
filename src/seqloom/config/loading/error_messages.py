"""Error messages about a recipe. They show each key as the user wrote it."""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from seqloom.config.loading.defaults import UnknownKey
from seqloom.config.loading.fields import (
    FieldSpec,
    KeyPath,
    all_sections,
    field_spec,
    format_path,
)
from seqloom.config.loading.toml import format_value
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.section import Section
from seqloom.extensions.registry import FORM, registered_names

EXAMPLES = {
    "data": '[data.train] with kind = "bundled", source = "de", target = "en"',
    "train": '[data.train] with kind = "parallel", source = "train.de", target = "train.en"',
    "source": 'source = "train.de"',
    "target": 'target = "train.en"',
    "path": 'path = "train.tsv"',
    "file": 'file = "train.tsv"',
    "bytes": "bytes = 626835",
    "files": 'files = [{ file = "train.tsv", bytes = 626835 }]',
    "licence": 'licence = "CC BY 4.0"',
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
    "run": 'run = "runs/general"',
    "tag": "tag = '<2yo>'",
    "like": "like = '<2en>'",
}
"""An example for each required key. The error message about a missing key shows it."""

NO_SUCH_SETTING = "there is no such setting"
"""Start of the message about an unknown key."""

PROBLEMS = {
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "string_type": "must be a string in quotes",
    "tuple_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be at most {le:g}",
}
"""Maps the type of a pydantic error to its message."""


def format_problems(problems: Iterable[str]) -> str:
    """Format problems as an indented list, one per line."""
    return "".join(f"\n  {problem}" for problem in problems)


def closest_match(word: str, candidates: Sequence[str], cutoff: float = 0.6) -> str | None:
    """Return the candidate most similar to `word`; None if no similarity reaches `cutoff`."""
    matches = difflib.get_close_matches(word, candidates, n=1, cutoff=cutoff)
    return matches[0] if matches else None


def unknown_key_problem(key: UnknownKey) -> str:
    """Return the message about an unknown key, with its path.

    The message suggests a similar key or the right table if there is one.
    """
    return f"{format_path(key.path)}: {explain_unknown_key(key)}"


def explain_unknown_key(key: UnknownKey) -> str:
    """Return the message about an unknown key, without its path."""
    name = str(key.path[-1])
    elsewhere = _paths_elsewhere(name, key.path)
    # If another table has this key, the user has probably put it into the wrong table, not misspelt
    # it. So suggest only a very similar key of this table.
    if elsewhere:
        match = closest_match(name, key.valid, cutoff=0.8)
        here = f"'{match}', or " if match else ""
        return f"{NO_SUCH_SETTING}; did you mean {here}{' or '.join(elsewhere)}?"
    if match := closest_match(name, key.valid):
        return f"{NO_SUCH_SETTING}; did you mean '{match}'?"
    return f"{NO_SUCH_SETTING}; the settings here are {', '.join(sorted(key.valid))}"


def _paths_elsewhere(name: str, path: KeyPath) -> list[str]:
    """Return the paths of all valid settings that have the same name as an unknown key.

    Returns an empty list if there are more than four such settings. Also returns an empty list if
    one of them has the path `path`. In this case the key is in the right table, but the table needs
    another `kind`.

    name: the name of the unknown key
    path: the path of the unknown key in the recipe
    """
    given = format_path(tuple(part for part in path if isinstance(part, str)))
    paths = {
        format_path((*table, name))
        for table, section in all_sections(RunConfig)
        if name in section.model_fields
    }
    return sorted(paths) if len(paths) <= 4 and given not in paths else []


def validation_problems(
    error: ValidationError, tables: dict[str, Any], unknown: Sequence[UnknownKey]
) -> list[str]:
    """Return one line for each problem that pydantic found in a recipe.

    tables:  the content of the recipe
    unknown: the unknown keys of the recipe. If one of them is a misspelt required key, the required
             key is not reported as missing
    """
    typos = {(*key.path[:-1], closest_match(str(key.path[-1]), key.valid) or "") for key in unknown}
    problems = []
    details = error.errors(include_url=False)
    # For a setting that is true, false or a word, pydantic reports two errors: one about each type.
    booleans = {detail["loc"][:-1] for detail in details if detail["loc"][-1:] == ("bool",)}
    for detail in details:
        path, spec, section = _locate(detail["loc"], tables)
        if detail["loc"][:-1] in booleans:
            if detail["type"] == "literal_error":
                assert spec is not None
                choices = ", ".join(f"'{choice}'" for choice in spec.choices)
                given = _format_given(detail["input"])
                problems.append(
                    f"{format_path(path)}: must be {choices}, true or false, not {given}"
                )
            continue
        # A misspelt key is reported already, so do not report that the correct key is missing.
        if not (detail["type"] == "missing" and path in typos):
            problems += _describe(detail, path, spec, section)
    return problems


def _locate(
    location: tuple[str | int, ...], tables: dict[str, Any]
) -> tuple[KeyPath, FieldSpec | None, type[Section] | None]:
    """Find the key of the recipe that a pydantic error is about.

    location: the location that pydantic reports
    tables:   the tables that pydantic validated

    Return three values:
    - the path of the key as the user wrote it
    - the values that the key accepts; None if the error is about the whole recipe
    - the section class of the table at this path; None if there is no table or its `kind` is not
      known

    `location` differs from the path in three ways. After a key that accepts several kinds of tables,
    it contains the `kind` of the table, and after a key that accepts values of several types, one of
    these types. If the user wrote a single table instead of a list, it contains the index 0.
    """
    path: list[str | int] = []
    section: type[Section] | None = RunConfig
    spec: FieldSpec | None = None
    value: Any = tables
    for part in location:
        if isinstance(part, int):
            if isinstance(value, tuple):
                value = value[part]
                path.append(part)
        elif section is None and spec is not None and part in spec.sections:
            section = spec.section_for(value) or spec.sections[part]
            continue
        elif section is None and spec is not None:
            continue  # the type that a value of several types does not have
        else:
            assert section is not None, f"the schema has no {location}"
            field = section.model_fields[part]
            spec = field_spec(field)
            value = value.get(part, field.default) if isinstance(value, dict) else None
            path.append(part)
        section = None if spec is None or spec.has_kinds else spec.section_for(value)
    return (*path,), spec, section


def _describe(
    detail: ErrorDetails, path: KeyPath, spec: FieldSpec | None, section: type[Section] | None
) -> list[str]:
    """Return the lines of the message about one pydantic error."""
    kind, given = detail["type"], detail["input"]
    context = detail.get("ctx", {})
    if kind == "value_error":
        return [_prefix_path(line, path, section) for line in str(context["error"]).split("\n")]
    key = format_path(path)
    if kind == "missing":
        return [_missing(path, spec)]
    if kind == "too_short":
        # pydantic counts only the valid items. An invalid item has its own message.
        return [] if given else [f"{key}: must not be empty"]
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        assert spec is not None
        tag = given.get("kind") if isinstance(given, dict) else None
        return [_invalid_choice(f"{key}.kind", tag, spec.kinds)]
    if kind == "literal_error":
        assert spec is not None
        # Registered names are looked up only here, because this reads the installed packages.
        names = registered_names("metric") if FORM in spec.choices else []
        return [_invalid_choice(key, given, [*spec.choices, *names])]
    problem = PROBLEMS.get(kind, detail["msg"]).format(**context)
    return [f"{key or 'the recipe'}: {problem}, not {_format_given(given)}"]


def _prefix_path(line: str, path: KeyPath, section: type[Section] | None) -> str:
    """Put the path of a section before a message.

    If the message starts with a key of the section ("key: …"), the key becomes part of the path.
    """
    match = re.match(r"(\w+(?:\.\w+)*): (.*)", line, re.DOTALL)
    if match and section is not None and match[1].split(".")[0] in section.model_fields:
        return f"{format_path((*path, *match[1].split('.')))}: {match[2]}"
    return f"{format_path(path) or 'the recipe'}: {line}"


def _missing(path: KeyPath, spec: FieldSpec | None) -> str:
    name = str(path[-1])
    if spec is not None and spec.choices:
        example = f"{name} = {format_value(spec.choices[0])}"
    elif name in EXAMPLES:
        example = EXAMPLES[name]
    else:
        return f"{format_path(path)}: is missing"  # a setting of an extension
    return f"{format_path(path)}: is missing; for example {example}"


def must_be(choices: Sequence[str]) -> str:
    """Return "must be 'a' or 'b'" for the choices a and b. Error messages contain this text."""
    return "must be " + " or ".join(f"'{choice}'" for choice in choices)


def _invalid_choice(key: str, given: Any, choices: Sequence[str]) -> str:
    if given is None:
        return f"{key}: is missing; it {must_be(choices)}"
    match = closest_match(given, choices) if isinstance(given, str) else None
    hint = f"; did you mean '{match}'?" if match else ""
    return f"{key}: {must_be(choices)}, not {_format_given(given)}{hint}"


def _format_given(value: Any) -> str:
    """Format a value that the user gave, shortened to one line."""
    if isinstance(value, str):
        text = f"'{value}'"
    elif isinstance(value, bool | int | float | tuple | list | dict):
        text = format_value(value)
    else:
        text = repr(value)
    text = text.replace("\n", "\\n")
    return text if len(text) <= 60 else f"{text[:57]}…"
