"""Every character is a token."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from seqloom.text.tags import Tags
from seqloom.text.tokenizer import content_digest, words_of, write_content
from seqloom.text.vocabulary import SPECIAL, UNKNOWN, Vocabulary


class Characters:
    """Every Unicode character is a token, spaces too; a character never seen is UNKNOWN.

    decode(encode(x)) == x for every text of known characters (in lower case, if asked for).
    """

    def __init__(self, vocabulary: Vocabulary, tags: Tags, lowercase: bool) -> None:
        self.vocabulary = vocabulary
        self.tags = tags
        self.lowercase = lowercase

    @classmethod
    def train(cls, lines: Iterable[str], tags: Tags, lowercase: bool) -> "Characters":
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(_split(line, tags, lowercase))
        return cls(Vocabulary.count(counts, tags.names), tags, lowercase)

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> "Characters":
        return cls(Vocabulary(content["pieces"]), Tags(content["tags"]), content["lowercase"])

    def _content(self) -> dict[str, Any]:
        return {
            "kind": "characters",
            "lowercase": self.lowercase,
            "tags": list(self.tags.names),
            "pieces": list(self.vocabulary.pieces[len(SPECIAL) :]),
        }

    @property
    def size(self) -> int:
        return len(self.vocabulary)

    @property
    def digest(self) -> str:
        return content_digest(self._content())

    def encode(self, text: str) -> list[int]:
        return [self.vocabulary.id(piece) for piece in _split(text, self.tags, self.lowercase)]

    def _surfaces(self, ids: Sequence[int]) -> list[str]:
        return ["" if id_ < UNKNOWN else self.vocabulary.piece(id_) for id_ in ids]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self._surfaces(ids))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.vocabulary.piece(id_) for id_ in ids]

    def word_of(self, ids: Sequence[int]) -> list[int]:
        return words_of(self._surfaces(ids))

    def save(self, folder: Path, name: str) -> None:
        write_content(folder / f"{name}.json", self._content())


def _split(text: str, tags: Tags, lowercase: bool) -> Iterable[str]:
    folded = tags.lower(text) if lowercase else text
    for part, is_tag in tags.split(folded):
        if is_tag:
            yield part
        else:
            yield from part
