"""A tokenizer whose tokens are single characters."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import ClassVar, Self

from seqloom.text.tags import Tags
from seqloom.text.vocabulary import Vocabulary
from seqloom.text.vocabulary_tokenizer import VocabularyTokenizer


class CharacterTokenizer(VocabularyTokenizer):
    """Every Unicode character is a token, spaces included. Unseen characters are UNKNOWN.

    decode(encode(x)) == x for every text of known characters (lowercased, if `lowercase` is set).
    """

    kind: ClassVar[str] = "characters"

    @classmethod
    def train(cls, lines: Iterable[str], tags: Tags, lowercase: bool) -> Self:
        """Collect the characters of these lines."""
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(split_characters(line, tags, lowercase))
        return cls(Vocabulary.from_counts(counts, tags.names), tags, lowercase)

    def split(self, text: str) -> Iterator[str]:
        return split_characters(text, self.tags, self.lowercase)


def split_characters(text: str, tags: Tags, lowercase: bool) -> Iterator[str]:
    """Yield the tags and the single characters of a text."""
    normalised = tags.lower(text) if lowercase else text
    for part, is_tag in tags.split(normalised):
        if is_tag:
            yield part
        else:
            yield from part
