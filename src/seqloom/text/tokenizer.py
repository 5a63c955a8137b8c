"""The interface of all tokenizers, and the format of their files."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from seqloom.core.errors import NotFoundError, StorageError
from seqloom.core.storage import write_file
from seqloom.text.preprocessing import Preprocessing


class Tokenizer(Protocol):
    """Converts text to token ids and back. `encode` adds neither START nor END."""

    preprocessing: Preprocessing
    """What `encode` does to a text first, and the strings that it always encodes as a single
    token."""

    @property
    def unknown_unit(self) -> Literal["character", "word"]:
        """What the method `unknown` returns: "character" for characters, "word" for words."""
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
    """Return for each token the index of its word in the decoded text; -1 if it has no word.

    A space at the start of a token belongs to the word after it.

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

    `read_content` uses the digest to find out whether the file is damaged.
    """
    with_digest = {**content, "digest": content_digest(content)}
    write_file(path, json.dumps(with_digest, ensure_ascii=False, indent=1).encode())


def read_content(path: Path) -> dict[str, Any]:
    """Read a JSON object that `write_content` wrote. Raises a StorageError if it is damaged."""
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


def read_model(path: Path, content: dict[str, Any]) -> bytes:
    """Read the sentencepiece model beside a tokenizer's JSON file, and check its digest.

    content: content of the JSON file
    """
    try:
        model = path.read_bytes()
    except OSError as error:
        raise NotFoundError(f"{path}: cannot be read: {error.strerror or error}") from error
    if hashlib.sha256(model).hexdigest() != content["sha256"]:
        raise damaged_file_error(path)
    return model


def damaged_file_error(path: Path) -> StorageError:
    """Return the error to raise if a tokenizer file is damaged."""
    return StorageError(
        f"{path}: is damaged, or is not a seqloom tokenizer; restore it from a copy, or train again"
    )
