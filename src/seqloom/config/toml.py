"""TOML in and out, for the values a recipe can hold."""

import re
import tomllib
from typing import Any

from seqloom.config.places import ordered, place_of
from seqloom.config.section import Section

NONE = "none"
"""TOML has no null. A setting that may be switched off is switched off by this word."""

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class SyntaxProblem(Exception):
    """Text that is not TOML: where, and what is wrong there."""


def parse(data: bytes) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        # A byte order mark is no part of the text, though some editors write one.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise SyntaxProblem(
            f"line {line}: is not UTF-8 (byte 0x{data[error.start]:02x}); save the file as UTF-8"
        ) from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SyntaxProblem(_located(str(error), text)) from error
    except RecursionError as error:
        raise SyntaxProblem("tables or lists are nested too deeply") from error


def _located(message: str, text: str) -> str:
    """tomllib puts the place last; a reader wants it first."""
    match = re.fullmatch(r"(.*) \(at (?:(line \d+, column \d+)|end of document)\)", message, re.S)
    if match is None:
        return message
    problem = match[1][:1].lower() + match[1][1:]
    if match[2] is None:
        return f"line {text.count(chr(10)) + 1}: the file ends too early: {problem}"
    return f"{match[2]}: {problem}"


def parse_value(text: str) -> Any:
    """One value as TOML writes it; whatever TOML does not know is taken as a bare word."""
    try:
        tables = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        if text.lstrip().startswith(("[", "{", '"', "'")):
            problem = re.sub(r" \(at [^)]*\)$", "", str(error)) or "is nested too deeply"
            raise SyntaxProblem(problem[:1].lower() + problem[1:]) from error
        return text
    value = tables["value"]
    # Dates and times are the only other types of TOML; no setting is one, some are texts.
    known = isinstance(value, bool | int | float | str | list | dict)
    return value if known and len(tables) == 1 else text


def format_value(value: Any) -> str:
    """A plain value or a list of plain values."""
    if value is None:
        return format_value(NONE)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return '"' + "".join(_escape(character) for character in value) + '"'
    if isinstance(value, tuple | list):
        return "[" + ", ".join(format_value(item) for item in value) + "]"
    if isinstance(value, dict):
        pairs = (f"{key} = {format_value(item)}" for key, item in value.items())
        return "{ " + ", ".join(pairs) + " }" if value else "{}"
    raise AssertionError(f"no setting holds a {type(value).__name__}")


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return f"\\u{ord(character):04x}" if ord(character) < 32 or ord(character) == 127 else character


def format_section(section: Section, path: tuple[str, ...] = ()) -> str:
    """A section as tables of TOML, with every setting in it, defaults too."""
    plain: list[str] = []
    tables: list[str] = []
    for name in ordered(type(section)):
        field = type(section).model_fields[name]
        value = getattr(section, name)
        if isinstance(value, Section):
            tables.append(_headed(value, (*path, name), "[{}]"))
        elif isinstance(value, tuple) and any(isinstance(item, Section) for item in value):
            tables += [_headed(item, (*path, name), "[[{}]]") for item in value]
        elif value is not None or _must_be_said(field.default, place_of(field).optional):
            plain.append(f"{name} = {format_value(value)}\n")
    return "".join(plain) + "".join(tables)


def _must_be_said(default: Any, optional: bool) -> bool:
    """Leaving a setting out gives its default, so None must be written where that is not None."""
    return optional and default is not None


def _headed(section: Section, path: tuple[str, ...], header: str) -> str:
    return f"\n{header.format('.'.join(path))}\n{format_section(section, path)}"
