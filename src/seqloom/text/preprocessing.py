"""Preprocessing of texts before tokenisation: Unicode normalisation and lowercasing.

A tag is a string that always becomes a single token, for example <2de>. Tags are not lowercased.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from unicodedata import normalize

from seqloom.config.schema.text import Normalization
from seqloom.core.errors import ConfigError
from seqloom.text.vocabulary import SPECIAL_TOKENS

JOINER = "￭"
"""Joiner (U+FFED). It is attached to the left or right end of a token to mark that the text has no
space there."""
SPACE = "▁"
"""Stands for a space inside a sentencepiece piece (U+2581)."""


_COMPOSED: dict[Normalization, Literal["NFC", "NFKC"]] = {"nfc": "NFC", "nfkc": "NFKC"}
_DECOMPOSED: dict[Normalization, Literal["NFD", "NFKD"]] = {"nfc": "NFD", "nfkc": "NFKD"}


def normalise(text: str, form: Normalization) -> str:
    """Convert a text to the Unicode normalisation form NFC or NFKC.

    form: "nfc" or "nfkc"; "none" returns the text unchanged
    """
    # ASCII text is the same in every form.
    return text if form == "none" or text.isascii() else normalize(_COMPOSED[form], text)


def decompose(text: str, form: Normalization) -> str:
    """Decompose all characters of a text, for example é into e and a combining accent.

    `normalise` composes the characters again.

    form: "nfc" converts the text to NFD, "nfkc" to NFKD; "none" returns the text unchanged
    """
    return text if form == "none" else normalize(_DECOMPOSED[form], text)


class Tags:
    """Finds tags in texts. A tag is a string that a tokenizer treats as a single token.

    If one tag is a prefix of another, the longer one matches first.

    names:         the tags, after Unicode normalisation
    normalization: Unicode normalisation form, to which tags and texts are converted
    """

    def __init__(self, names: Sequence[str], normalization: Normalization = "none") -> None:
        self.normalization: Normalization = normalization
        written = tuple(dict.fromkeys(names))
        self.names = tuple(normalise(name, normalization) for name in written)
        problems = [problem for name in self.names for problem in _problems(name)]
        problems += [
            f"{name!r}: is the same as an earlier tag if text.normalization = '{normalization}'; "
            "remove one of them"
            for index, name in enumerate(written)
            if self.names.index(self.names[index]) < index
        ]
        if problems:
            raise ConfigError("text.tags is not valid:\n  " + "\n  ".join(problems))
        # A tag is matched in the decomposed text: in a composed text, a combining mark after the
        # tag could be part of the last character of the tag.
        self._names = {decompose(name, normalization): name for name in self.names}
        longest_first = sorted(self._names, key=lambda name: (-len(name), name))
        alternatives = "|".join(re.escape(name) for name in longest_first)
        self._pattern = re.compile(f"({alternatives})") if self.names else None

    def split(self, text: str) -> Iterator[tuple[str, bool]]:
        """Normalise a text, and split it into tags and the text between them.

        Yields each non-empty part, with True if the part is a tag and False otherwise.
        """
        if self._pattern is None:
            parts = [text]
        else:
            parts = self._pattern.split(decompose(text, self.normalization))
        # re.split returns the captured tags at odd indices.
        for index, part in enumerate(parts):
            if index % 2 == 1:
                yield self._names[part], True
            elif part:
                yield normalise(part, self.normalization), False

    def normalise(self, text: str) -> str:
        """Convert a text to the Unicode normalisation form.

        If a combining mark follows a tag, the two are not composed, so that the tag stays intact.
        """
        return "".join(part for part, _ in self.split(text))

    def first(self, text: str) -> tuple[str, str]:
        """Return the tag at the start of the text ("" if there is none) and the text after it."""
        parts = list(self.split(text))
        if not (parts and parts[0][1]):
            return "", text
        return parts[0][0], "".join(part for part, _ in parts[1:]).lstrip()

    def lower(self, text: str) -> str:
        """Normalise and lowercase a text except for its tags."""
        # The lower case of a normalised character may be several characters in another form.
        return "".join(
            part if is_tag else normalise(part.lower(), self.normalization)
            for part, is_tag in self.split(text)
        )


def _problems(name: str) -> Iterator[str]:
    if not name or any(character.isspace() for character in name):
        yield f"{name!r}: a tag must not be empty and must have no white space; use a form like '<2fr>'"
    if name in SPECIAL_TOKENS:
        yield f"{name!r}: is the name of a special token; choose another name"
    if JOINER in name or SPACE in name:
        yield f"{name!r}: {JOINER!r} and {SPACE!r} are reserved characters; remove them"


NO_TAGS = Tags(())


@dataclass(frozen=True)
class Preprocessing:
    """Normalises and lowercases a text before a tokenizer splits the text into tokens.

    tags:      finds the strings that always become a single token. This object also stores the
               Unicode normalisation form of all texts
    lowercase: True to lowercase everything but the tags
    """

    tags: Tags = NO_TAGS
    lowercase: bool = False

    @property
    def normalization(self) -> Normalization:
        """Unicode normalisation form of the preprocessed text."""
        return self.tags.normalization

    def apply(self, text: str) -> str:
        """Return the preprocessed text."""
        if not self.tags.names and not self.lowercase:
            return normalise(text, self.normalization)
        return "".join(part for part, _ in self.split(text))

    def split(self, text: str) -> Iterator[tuple[str, bool]]:
        """Preprocess a text, and split it into tags and the text between them.

        Yields each non-empty part, with True if the part is a tag and False otherwise.
        """
        return self.tags.split(self.tags.lower(text) if self.lowercase else text)

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> "Preprocessing":
        """Read the preprocessing settings from the content of a tokenizer's JSON file."""
        tags = Tags(content["tags"], content["normalization"])
        return cls(tags, content["lowercase"])

    def content(self) -> dict[str, Any]:
        """Return the preprocessing settings, as a tokenizer's JSON file stores them."""
        return {
            "lowercase": self.lowercase,
            "tags": list(self.tags.names),
            "normalization": self.normalization,
        }
