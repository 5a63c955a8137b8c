"""Converts Pydantic's validation errors to messages in plain words."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MESSAGES = {
    "missing": "this field is required",
    "extra_forbidden": "there is no such field; /docs lists all fields",
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "the number is too large",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be greater than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "too_short": "must have at least {min_length} item(s), not {actual_length}",
    "too_long": "must have at most {max_length} item(s), not {actual_length}",
    "literal_error": "must be {expected}",
    "value_error": "{error}",
}
"""Messages by Pydantic's type of the error. {…} are values of its context."""

MATRIX_FIELDS = ("observed", "context", "states", "to_query", "to_key", "to_value")
"""Fields whose items are rows of numbers."""


def invalid_fields(errors: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Convert Pydantic's errors to a dictionary from the name of a field to its message.

    If a field can have several types, Pydantic reports one error for each type. Their messages are
    joined with "or".
    """
    messages: dict[str, list[str]] = {}
    for error in errors:
        found = messages.setdefault(format_location(error["loc"]), [])
        message = MESSAGES.get(error["type"], str(error["msg"]))
        message = message.format_map(error.get("ctx", {})) if "{" in message else message
        if message not in found:
            found.append(message)
    return {field: " or ".join(found) for field, found in messages.items()}


def describe_fields(messages: Mapping[str, str]) -> str:
    """Join the messages about several fields, each with the location of its field in words."""
    return "; ".join(f"{location_in_words(field)}: {text}" for field, text in messages.items())


def format_location(location: Sequence[Any]) -> str:
    """Write the location of a field as text: ("texts", 0) -> texts[0]

    If a value can have several types, Pydantic adds the name of a type, such as "str", to the
    location. The result does not contain this name.
    """
    first, *rest = location
    return str(first) + "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}"
        for part in rest
        if isinstance(part, int) or not _is_type_name(part)
    )


def location_in_words(location: str) -> str:
    """Write the location of a field in words. The words count items from 1, not from 0.

    texts[0] -> texts, item 1
    windows[0].observed[2][1] -> windows, item 1, observed, row 3, column 2
    """
    location = re.sub(r"\]\[(\d+)\]", lambda match: f"], column {int(match[1]) + 1}", location)
    location = re.sub(
        r"(\w+)\[(\d+)\]",
        lambda match: f"{match[1]}, {_item_name(match[1])} {int(match[2]) + 1}",
        location,
    )
    return location.replace(".", ", ")


def _item_name(field: str) -> str:
    return "row" if field in MATRIX_FIELDS else "item"


def _is_type_name(part: str) -> bool:
    return "[" in part or part in ("str", "int", "float", "bool")
