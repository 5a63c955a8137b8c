"""What every tokenizer can do, and how one is kept on disk."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from seqloom.core.errors import NotFoundError, StorageError
from seqloom.core.storage import write_file
from seqloom.text.tags import Tags


class Tokenizer(Protocol):
    """Strings to ids and back. Ids are those of the text alone, without START and END."""

    tags: Tags
    """Strings that are one token each, whatever stands beside them."""
    lowercase: bool
    """Does it fold text to lower case, so that no capital ever comes out?"""

    @property
    def size(self) -> int:
        """How many ids there are: every id is below this."""
        ...

    @property
    def digest(self) -> str:
        """SHA-256 of all that decides what it does: equal digests, equal ids."""
        ...

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text. PAD, START and END are skipped, UNKNOWN reads "<unk>", tags are verbatim."""
        ...

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """What to call each token in a picture."""
        ...

    def word_of(self, ids: Sequence[int]) -> list[int]:
        """For each token the index of its word in `decode(ids).split()`.

        A token that is only a space belongs to the word after it. -1: the token is part of no
        word (PAD, START, END, a space at the very end). A token with several words in it belongs
        to the first.
        """
        ...

    def save(self, folder: Path, name: str) -> None: ...


def words_of(surfaces: Iterable[str]) -> list[int]:
    """`word_of`, given what each token adds to the text: "" for a special token."""
    words: list[int] = []
    count = 0
    inside = False
    for surface in surfaces:
        begins = surface.lstrip()
        continues = inside and begins == surface
        words.append(-1 if not surface else count - 1 if begins and continues else count)
        for character in surface:
            if not character.isspace() and not inside:
                count += 1
            inside = not character.isspace()
    return [word if word < count else -1 for word in words]


def content_digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_content(path: Path, content: dict[str, Any]) -> None:
    """As JSON, with its own digest, so that damage shows."""
    sealed = {**content, "digest": content_digest(content)}
    write_file(path, json.dumps(sealed, ensure_ascii=False, indent=1).encode())


def read_content(path: Path) -> dict[str, Any]:
    """What `write_content` wrote, if it is there and unharmed."""
    try:
        content = json.loads(path.read_bytes().decode("utf-8"))
        sound = content.pop("digest") == content_digest(content)
    except FileNotFoundError as error:
        raise NotFoundError(f"{path}: there is no such tokenizer") from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        sound = False
    if not sound:
        raise damaged(path)
    return content


def damaged(path: Path) -> StorageError:
    return StorageError(
        f"{path}: is damaged, or is no tokenizer of seqloom; restore it from a copy, or train again"
    )
