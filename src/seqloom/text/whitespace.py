"""What white space separates is a token."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Self

from seqloom.text.listed import ListedTokenizer
from seqloom.text.tags import JOINER, Tags
from seqloom.text.vocabulary import SPECIAL, UNKNOWN, Vocabulary
from seqloom.text.words import UNSPEAKABLE, join_words, split_chunks


class Whitespace(ListedTokenizer):
    """Tokens as whoever wrote the text has cut them: labels, phones, "do n't".

    decode(encode(x)) is x with every run of white space made one space, for every text of known
    tokens. The token <unk>, which corpora such as WikiText hold, is UNKNOWN. A tag that touches its
    neighbour gets a joiner token, as it does among Words.
    """

    kind: ClassVar[str] = "whitespace"

    @classmethod
    def train(cls, lines: Iterable[str], tags: Tags, lowercase: bool, size: int) -> Self:
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(split_chunks(line, tags, lowercase, _whole))
        del counts[UNSPEAKABLE], counts[SPECIAL[UNKNOWN]]
        reserved = (*tags.names, JOINER) if tags.names else ()
        return cls(Vocabulary.count(counts, reserved, size), tags, lowercase)

    def cut(self, text: str) -> Iterator[str]:
        return split_chunks(text, self.tags, self.lowercase, _whole)

    def surfaces(self, pieces: Sequence[str]) -> list[str]:
        return join_words(pieces)


def _whole(chunk: str) -> tuple[str]:
    """One token, unless it holds the joiner, which would be lost on the way back."""
    return (UNSPEAKABLE if JOINER in chunk else chunk,)
