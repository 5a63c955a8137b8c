"""Tags such as <U> or <2fr>: strings that every tokenizer keeps as one token."""

import re
from collections.abc import Iterator, Sequence

from seqloom.core.errors import ConfigError
from seqloom.text.vocabulary import SPECIAL_TOKENS

JOINER = "￭"
"""Marks where two word tokens meet without a space (U+FFED)."""
SPACE = "▁"
"""Stands for a space inside a sentencepiece piece (U+2581)."""


class Tags:
    """A set of tags, and how to find them in a text.

    If one tag is a prefix of another, the longer one matches first.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        problems = [problem for name in self.names for problem in _problems(name)]
        if problems:
            raise ConfigError("text.tags is not valid:\n  " + "\n  ".join(problems))
        longest_first = sorted(self.names, key=lambda name: (-len(name), name))
        alternatives = "|".join(re.escape(name) for name in longest_first)
        self._pattern = re.compile(f"({alternatives})") if self.names else None

    def split(self, text: str) -> Iterator[tuple[str, bool]]:
        """Split a text at its tags. Yields each non-empty part, and True if it is a tag."""
        parts = [text] if self._pattern is None else self._pattern.split(text)
        # re.split returns the captured tags at odd indices.
        yield from ((part, index % 2 == 1) for index, part in enumerate(parts) if part)

    def first(self, text: str) -> tuple[str, str]:
        """Return the tag at the start of the text ("" if there is none) and the text after it."""
        match = None if self._pattern is None else self._pattern.match(text)
        return ("", text) if match is None else (match[0], text[match.end() :].lstrip())

    def lower(self, text: str) -> str:
        """Lowercase a text except for its tags."""
        return "".join(part if is_tag else part.lower() for part, is_tag in self.split(text))


def _problems(name: str) -> Iterator[str]:
    if not name or any(character.isspace() for character in name):
        yield f"{name!r}: a tag must not be empty and must have no white space; use a form like '<2fr>'"
    if name in SPECIAL_TOKENS:
        yield f"{name!r}: is the name of a special token; choose another name"
    if JOINER in name or SPACE in name:
        yield f"{name!r}: {JOINER!r} and {SPACE!r} are reserved characters; remove them"
