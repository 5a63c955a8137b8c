"""Replaces numbers that JSON cannot encode."""

import math
from typing import Any


def to_json_number(value: float) -> float | None:
    """Return the value, or None for infinities and NaN."""
    return value if math.isfinite(value) else None


def to_finite_json(value: Any) -> Any:
    """Replace infinities and NaN in nested lists and dictionaries by None."""
    match value:
        case dict():
            return {key: to_finite_json(item) for key, item in value.items()}
        case list() | tuple():
            return [to_finite_json(item) for item in value]
        case float():
            return to_json_number(value)
        case _:
            return value
