"""Tags such as <U> or <2fr>: strings that stay one token, whatever the tokenizer."""

import re
from collections.abc import Iterator, Sequence

from seqloom.core.errors import ConfigError
from seqloom.text.vocabulary import SPECIAL

JOINER = "￭"
"""Marks where two word tokens meet without a space (U+FFED)."""
SPACE = "▁"
"""Stands for a space inside a sentencepiece piece (U+2581)."""


class Tags:
    """Finds tags in a text, the longest first where one is the beginning of another."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        problems = [problem for name in self.names for problem in _problems(name)]
        if problems:
            raise ConfigError("text.tags cannot be used:\n  " + "\n  ".join(problems))
        longest_first = sorted(self.names, key=lambda name: (-len(name), name))
        alternatives = "|".join(re.escape(name) for name in longest_first)
        self._pattern = re.compile(f"({alternatives})") if self.names else None

    def split(self, text: str) -> Iterator[tuple[str, bool]]:
        """The parts of the text, none empty, each with whether it is a tag."""
        parts = [text] if self._pattern is None else self._pattern.split(text)
        # re.split puts what was captured at the odd places.
        yield from ((part, place % 2 == 1) for place, part in enumerate(parts) if part)

    def first(self, text: str) -> tuple[str, str]:
        """The tag that the text begins with, "" if none, and the rest without the space between."""
        found = None if self._pattern is None else self._pattern.match(text)
        return ("", text) if found is None else (found[0], text[found.end() :].lstrip())

    def lower(self, text: str) -> str:
        """The text in lower case, its tags as they are."""
        return "".join(part if is_tag else part.lower() for part, is_tag in self.split(text))


def _problems(name: str) -> Iterator[str]:
    if not name or any(character.isspace() for character in name):
        yield f"{name!r}: a tag is not empty and has no white space; use something like '<2fr>'"
    if name in SPECIAL:
        yield f"{name!r}: is the name of a special token; choose another"
    if JOINER in name or SPACE in name:
        yield f"{name!r}: {JOINER!r} and {SPACE!r} have a meaning of their own; leave them out"
