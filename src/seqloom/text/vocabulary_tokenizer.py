"""The base class of tokenizers that look up pieces in a `Vocabulary`, and the character
tokenizer."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from seqloom.text.preprocessing import Preprocessing
from seqloom.text.tokenizer import content_digest, word_indices, write_content
from seqloom.text.vocabulary import SPECIAL_TOKENS, UNKNOWN, Vocabulary


class VocabularyTokenizer:
    """A tokenizer that splits text into pieces and looks each of them up in a vocabulary.

    Subclasses implement `split`. They also implement `surfaces` if decoding does more than
    concatenate the pieces.
    """

    kind: ClassVar[str]
    unknown_unit: ClassVar[Literal["character", "word"]] = "word"

    def __init__(self, vocabulary: Vocabulary, preprocessing: Preprocessing) -> None:
        self.vocabulary = vocabulary
        self.preprocessing = preprocessing

    def split(self, text: str) -> Iterable[str]:
        """Split a text into pieces. Some of them may be missing in the vocabulary."""
        raise NotImplementedError

    def surfaces(self, pieces: Sequence[str]) -> list[str]:
        """Return the text that each piece adds to the decoded text.

        pieces: the piece of each token; "" for PAD, START and END
        """
        return list(pieces)

    @classmethod
    def load(cls, path: Path, content: dict[str, Any]) -> Self:
        """Load a tokenizer.

        path:    path of a file beside its JSON file, which this tokenizer does not need
        content: content of the tokenizer's JSON file
        """
        return cls(Vocabulary(content["pieces"]), Preprocessing.from_content(content))

    def _content(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            **self.preprocessing.content(),
            "pieces": list(self.vocabulary.pieces[len(SPECIAL_TOKENS) :]),
        }

    @property
    def size(self) -> int:
        return len(self.vocabulary)

    @property
    def digest(self) -> str:
        return content_digest(self._content())

    def encode(self, text: str) -> list[int]:
        return [self.vocabulary.id(piece) for piece in self.split(text)]

    def unknown(self, text: str) -> list[str]:
        return [
            self.unknown_text(piece) for piece in self.split(text) if piece not in self.vocabulary
        ]

    def unknown_text(self, piece: str) -> str:
        """Return an unknown piece as it appears in the text, without added marks.

        Some tokenizers add marks to pieces, for example to show that there was no space.
        """
        return piece

    def _surfaces(self, ids: Sequence[int]) -> list[str]:
        return self.surfaces(["" if i < UNKNOWN else self.vocabulary.piece(i) for i in ids])

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self._surfaces(ids))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.vocabulary.piece(id_) for id_ in ids]

    def word_of(self, ids: Sequence[int]) -> list[int]:
        return word_indices(self._surfaces(ids))

    def save(self, folder: Path, name: str) -> None:
        write_content(folder / f"{name}.json", self._content())


class CharacterTokenizer(VocabularyTokenizer):
    """Encodes every Unicode character, including spaces, as a token. Unseen characters are UNKNOWN.

    For a text x of known characters, decode(encode(x)) is the preprocessed x.
    """

    kind: ClassVar[str] = "characters"
    unknown_unit: ClassVar[Literal["character", "word"]] = "character"

    @classmethod
    def train(cls, lines: Iterable[str], preprocessing: Preprocessing) -> Self:
        """Build a tokenizer whose vocabulary contains all characters of these lines."""
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(split_characters(line, preprocessing))
        return cls(Vocabulary.from_counts(counts, preprocessing.tags.names), preprocessing)

    def split(self, text: str) -> Iterator[str]:
        return split_characters(text, self.preprocessing)


def split_characters(text: str, preprocessing: Preprocessing) -> Iterator[str]:
    """Split a text into characters. A tag such as <2de> is not split."""
    for part, is_tag in preprocessing.split(text):
        if is_tag:
            yield part
        else:
            yield from part
