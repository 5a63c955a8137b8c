"""Every character is a token."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import ClassVar, Self

from seqloom.text.listed import ListedTokenizer
from seqloom.text.tags import Tags
from seqloom.text.vocabulary import Vocabulary


class Characters(ListedTokenizer):
    """Every Unicode character is a token, spaces too; a character never seen is UNKNOWN.

    decode(encode(x)) == x for every text of known characters (in lower case, if asked for).
    """

    kind: ClassVar[str] = "characters"

    @classmethod
    def train(cls, lines: Iterable[str], tags: Tags, lowercase: bool) -> Self:
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(split_characters(line, tags, lowercase))
        return cls(Vocabulary.count(counts, tags.names), tags, lowercase)

    def cut(self, text: str) -> Iterator[str]:
        return split_characters(text, self.tags, self.lowercase)


def split_characters(text: str, tags: Tags, lowercase: bool) -> Iterator[str]:
    folded = tags.lower(text) if lowercase else text
    for part, is_tag in tags.split(folded):
        if is_tag:
            yield part
        else:
            yield from part
