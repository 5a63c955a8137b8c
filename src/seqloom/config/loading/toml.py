"""Reading and writing the TOML of a recipe."""

import re
import tomllib
from typing import Any

from seqloom.config.loading.fields import field_names, field_spec
from seqloom.config.schema.section import Section

NONE = "none"
"""The value that switches off an optional setting. TOML has no null."""

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class TomlSyntaxError(Exception):
    """The text is not valid TOML. The message says where and why."""


def parse_toml(data: bytes) -> dict[str, Any]:
    """Return the tables of a TOML file."""
    try:
        # utf-8-sig removes the byte order mark that some editors write.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise TomlSyntaxError(
            f"line {line}: is not UTF-8 (byte 0x{data[error.start]:02x}); save the file as UTF-8"
        ) from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlSyntaxError(_location_first(str(error), text)) from error
    except RecursionError as error:
        raise TomlSyntaxError("tables or lists are nested too deeply") from error


def _location_first(message: str, text: str) -> str:
    """Move the location from the end of an error message of tomllib to its start."""
    match = re.fullmatch(r"(.*) \(at (?:(line \d+, column \d+)|end of document)\)", message, re.S)
    if match is None:
        return message
    problem = match[1][:1].lower() + match[1][1:]
    if match[2] is None:
        return f"line {text.count(chr(10)) + 1}: the file ends too early: {problem}"
    return f"{match[2]}: {problem}"


def parse_value(text: str) -> Any:
    """Parse a single TOML value. Text that is not valid TOML is returned as a string.

    But invalid text that starts like a list, a table or a quoted string raises TomlSyntaxError.
    """
    try:
        tables = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        if text.lstrip().startswith(("[", "{", '"', "'")):
            problem = re.sub(r" \(at [^)]*\)$", "", str(error)) or "is nested too deeply"
            raise TomlSyntaxError(problem[:1].lower() + problem[1:]) from error
        return text
    value = tables["value"]
    # Dates and times are the only other TOML types. No setting has such a type, so a text that
    # looks like a date is returned as a string. A text with a newline and a second key is not a
    # single value, so it is returned as a string too.
    is_supported = isinstance(value, bool | int | float | str | list | dict)
    return value if is_supported and len(tables) == 1 else text


def format_value(value: Any) -> str:
    """Format a plain value, a list or an inline table as TOML."""
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
    raise AssertionError(f"cannot write a value of type {type(value).__name__} as TOML")


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return f"\\u{ord(character):04x}" if ord(character) < 32 or ord(character) == 127 else character


def format_recipe(config: Section) -> str:
    """Format a recipe, including all defaults, as TOML.

    `load_recipe(parse_toml(text.encode()))` restores the recipe from the returned text.
    """
    return _format_section(config, ())


def _format_section(section: Section, path: tuple[str, ...]) -> str:
    plain: list[str] = []
    tables: list[str] = []
    for name in field_names(type(section)):
        field = type(section).model_fields[name]
        value = getattr(section, name)
        if isinstance(value, Section):
            tables.append(_format_table(value, (*path, name), "[{}]"))
        elif isinstance(value, tuple) and any(isinstance(item, Section) for item in value):
            tables += [_format_table(item, (*path, name), "[[{}]]") for item in value]
        # A missing key stands for the default, so None is written only if the default is not None.
        elif value is not None or (field_spec(field).optional and field.default is not None):
            plain.append(f"{name} = {format_value(value)}\n")
    return "".join(plain) + "".join(tables)


def _format_table(section: Section, path: tuple[str, ...], header: str) -> str:
    return f"\n{header.format('.'.join(path))}\n{_format_section(section, path)}"
