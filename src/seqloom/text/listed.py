"""What tokenizers have in common whose pieces can simply be listed."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from seqloom.text.tags import Tags
from seqloom.text.tokenizer import content_digest, words_of, write_content
from seqloom.text.vocabulary import SPECIAL, UNKNOWN, Vocabulary


class ListedTokenizer:
    """A tokenizer that is a way to cut text and a list of the pieces that are known."""

    kind: ClassVar[str]

    def __init__(self, vocabulary: Vocabulary, tags: Tags, lowercase: bool) -> None:
        self.vocabulary = vocabulary
        self.tags = tags
        self.lowercase = lowercase

    def cut(self, text: str) -> Iterable[str]:
        """The pieces of a text, known or not."""
        raise NotImplementedError

    def surfaces(self, pieces: Sequence[str]) -> list[str]:
        """What each piece adds to the text; "" is a piece that is not shown."""
        return list(pieces)

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> Self:
        return cls(Vocabulary(content["pieces"]), Tags(content["tags"]), content["lowercase"])

    def _content(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
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
        return [self.vocabulary.id(piece) for piece in self.cut(text)]

    def _surfaces(self, ids: Sequence[int]) -> list[str]:
        return self.surfaces(["" if i < UNKNOWN else self.vocabulary.piece(i) for i in ids])

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self._surfaces(ids))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.vocabulary.piece(id_) for id_ in ids]

    def word_of(self, ids: Sequence[int]) -> list[int]:
        return words_of(self._surfaces(ids))

    def save(self, folder: Path, name: str) -> None:
        write_content(folder / f"{name}.json", self._content())
