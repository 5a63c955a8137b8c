"""The interface of all tokenizers, the format of their files, and tags."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from seqloom.core.errors import ConfigError, NotFoundError, StorageError
from seqloom.core.storage import write_file
from seqloom.text.vocabulary import SPECIAL_TOKENS

JOINER = "￭"
"""Joiner (U+FFED). It is attached to the left or right end of a token to mark that the text has no
space there."""
SPACE = "▁"
"""Stands for a space inside a sentencepiece piece (U+2581)."""


class Tags:
    """Finds tags in texts. A tag is a string that a tokenizer treats as a single token.

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
        """Split a text into tags and the text between them.

        Yields each non-empty part, with True if the part is a tag and False otherwise.
        """
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


class Tokenizer(Protocol):
    """Converts text to token ids and back. `encode` adds neither START nor END."""

    tags: Tags
    """Strings that are always encoded as a single token."""
    lowercase: bool
    """True if `encode` lowercases the text. Decoded text then has no capitals, except in tags."""

    @property
    def unknown_unit(self) -> Literal["character", "word"]:
        """What the parts in the result of `unknown` are."""
        ...

    @property
    def size(self) -> int:
        """Size of the vocabulary. Ids range from 0 to size - 1."""
        ...

    @property
    def digest(self) -> str:
        """SHA-256 of everything that determines the ids: equal digests mean equal ids."""
        ...

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text."""
        ...

    def unknown(self, text: str) -> list[str]:
        """Return the characters or words of a text that are encoded as UNKNOWN, in order.

        A part that occurs several times is listed several times.
        """
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of these ids.

        PAD, START and END are skipped, UNKNOWN becomes "<unk>", and tags stay as they are.
        """
        ...

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return a label for each token. Figures show these labels."""
        ...

    def word_of(self, ids: Sequence[int]) -> list[int]:
        """Return for each token the index of its word in `decode(ids).split()`.

        A token that is only a space belongs to the word after it. A token that contains several
        words belongs to the first of them. The index is -1 if the token belongs to no word (PAD,
        START, END, a space at the end).
        """
        ...

    def save(self, folder: Path, name: str) -> None:
        """Write the tokenizer to `folder`, in files whose names start with `name`."""
        ...


def word_indices(surfaces: Iterable[str]) -> list[int]:
    """Return for each token the index of its word, as `Tokenizer.word_of` defines it.

    surfaces: the text that each token adds to the decoded text; "" for a special token
    """
    indices: list[int] = []
    word_count = 0
    inside_word = False
    for surface in surfaces:
        stripped = surface.lstrip()
        continues_word = inside_word and stripped == surface
        if not surface:
            indices.append(-1)
        elif stripped and continues_word:
            indices.append(word_count - 1)
        else:
            indices.append(word_count)
        for character in surface:
            if not character.isspace() and not inside_word:
                word_count += 1
            inside_word = not character.isspace()
    return [index if index < word_count else -1 for index in indices]


def content_digest(content: dict[str, Any]) -> str:
    """Return the SHA-256 of a JSON object."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_content(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON object and its digest to a file.

    `read_content` compares the two to find out whether the file is damaged.
    """
    with_digest = {**content, "digest": content_digest(content)}
    write_file(path, json.dumps(with_digest, ensure_ascii=False, indent=1).encode())


def read_content(path: Path) -> dict[str, Any]:
    """Read what `write_content` wrote and check its digest."""
    try:
        content = json.loads(path.read_bytes().decode("utf-8"))
        valid = content.pop("digest") == content_digest(content)
    except FileNotFoundError as error:
        raise NotFoundError(f"{path}: there is no such tokenizer") from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        valid = False
    if not valid:
        raise damaged_file_error(path)
    return content


def damaged_file_error(path: Path) -> StorageError:
    """Return the error to raise if a tokenizer file is damaged."""
    return StorageError(
        f"{path}: is damaged, or is not a seqloom tokenizer; restore it from a copy, or train again"
    )
