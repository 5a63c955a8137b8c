"""Escapes plain text for Markdown pages."""

import re

_CODE = re.compile(r"(`[^`]+`)")
_SPECIAL = re.compile(r"([\\*_<>\[\]${}|~#])")


def escape(text: str) -> str:
    """Escape everything that Markdown would interpret, except code between backticks."""
    parts = _CODE.split(text)
    return "".join(
        part if index % 2 else _SPECIAL.sub(r"\\\1", part) for index, part in enumerate(parts)
    )
