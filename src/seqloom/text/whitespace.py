"""A tokenizer that splits text at white space only."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Self

from seqloom.text.tags import JOINER, Tags
from seqloom.text.vocabulary import SPECIAL_TOKENS, UNKNOWN, Vocabulary
from seqloom.text.vocabulary_tokenizer import VocabularyTokenizer
from seqloom.text.words import NO_PIECE, join_words, split_chunks


class WhitespaceTokenizer(VocabularyTokenizer):
    """Splits at white space: for labels, phonemes and text that is tokenised already ("do n't").

    decode(encode(x)) is x with every run of white space replaced by one space, for every text of
    known tokens. The token <unk>, which corpora such as WikiText contain, is UNKNOWN. A tag
    without a space beside it gets a joiner token, as in WordTokenizer.
    """

    kind: ClassVar[str] = "whitespace"

    @classmethod
    def train(cls, lines: Iterable[str], tags: Tags, lowercase: bool, size: int) -> Self:
        """Count the tokens of these lines and keep the most frequent ones."""
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(split_chunks(line, tags, lowercase, _keep_chunk))
        del counts[NO_PIECE], counts[SPECIAL_TOKENS[UNKNOWN]]
        reserved = (*tags.names, JOINER) if tags.names else ()
        return cls(Vocabulary.from_counts(counts, reserved, size), tags, lowercase)

    def split(self, text: str) -> Iterator[str]:
        return split_chunks(text, self.tags, self.lowercase, _keep_chunk)

    def surfaces(self, pieces: Sequence[str]) -> list[str]:
        return join_words(pieces)


def _keep_chunk(chunk: str) -> tuple[str]:
    """One token, unless it contains the joiner, which decoding would remove."""
    return (NO_PIECE if JOINER in chunk else chunk,)
