"""Tokenizers that split text into words and punctuation marks, or at white space only."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import ClassVar, Self
from unicodedata import category

from seqloom.text.preprocessing import JOINER, Preprocessing
from seqloom.text.vocabulary import SPECIAL_TOKENS, UNKNOWN, Vocabulary
from seqloom.text.vocabulary_tokenizer import VocabularyTokenizer


class WordTokenizer(VocabularyTokenizer):
    """Encodes every word and every punctuation mark as a token. Rare words and marks are UNKNOWN.

    The joiner ￭ marks that there is no space between two tokens. It is attached to the punctuation
    mark, so that a word is the same token with and without punctuation next to it:

        He said: "Don't go!"   ->   He said ￭: "￭ Don't go ￭! ￭"

    If there is no space between a tag and its neighbour, the joiner is a separate token. If the
    text itself contains the character ￭, the word or punctuation mark with this character is
    UNKNOWN.

    For a text x of known tokens, decode(encode(x)) is the preprocessed x with these exceptions: each
    run of white space becomes one space, and white space at both ends is removed.
    """

    kind: ClassVar[str] = "words"

    @classmethod
    def train(
        cls, lines: Iterable[str], preprocessing: Preprocessing, size: int, min_count: int
    ) -> Self:
        """Build a tokenizer whose vocabulary is the most frequent tokens of these lines."""
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(split_words(line, preprocessing))
        del counts[NO_PIECE]
        reserved = _reserved_pieces(preprocessing)
        return cls(Vocabulary.from_counts(counts, reserved, size, min_count), preprocessing)

    def split(self, text: str) -> Iterator[str]:
        return split_words(text, self.preprocessing)

    def unknown_text(self, piece: str) -> str:
        return unmarked(piece)

    def surfaces(self, pieces: Sequence[str]) -> list[str]:
        return join_words(pieces)


def _reserved_pieces(preprocessing: Preprocessing) -> tuple[str, ...]:
    """Return the pieces that the vocabulary contains even if they are rare: tags and the joiner.

    The joiner is a separate piece only beside a tag, where it marks that there is no space. If
    there are no tags, the result is empty.
    """
    names = preprocessing.tags.names
    return (*names, JOINER) if names else ()


NO_PIECE = ""
"""Replaces a token that contains the joiner character, because decoding would remove that
character. No vocabulary contains NO_PIECE, so it is encoded as UNKNOWN."""


_MARK_CODES = (*range(0x20000), *range(0xE0100, 0xE01F0))
"""Ranges of code points that together include all combining marks of Unicode."""


@cache
def _pattern() -> re.Pattern[str]:
    """Return a pattern that matches a word, or one character that is not part of a word.

    A word consists of letters, digits and underscores. It may contain apostrophes, but not at its
    start or end. Combining marks, such as accents, belong to the character before them. The pattern
    never matches white space.
    """
    # Vowel signs of many scripts are combining marks, which \w does not match.
    marks = "".join(chr(code) for code in _MARK_CODES if category(chr(code))[0] == "M")
    letter = rf"[\w{marks}]"
    return re.compile(rf"{letter}+(?:['’]{letter}+)*|\S[{marks}]*")


def split_words(text: str, preprocessing: Preprocessing) -> Iterator[str]:
    """Split a text into tags, words and punctuation marks.

    The joiner ￭ marks that there is no space between two tokens. It is attached to a punctuation
    mark, or is a separate token beside a tag.
    """
    return split_chunks(text, preprocessing, _split_chunk)


def split_chunks(
    text: str, preprocessing: Preprocessing, split: Callable[[str], Iterable[str]]
) -> Iterator[str]:
    """Split a text at tags and white space into chunks, then split each chunk with `split`.

    Yields the resulting pieces and the tags in the order of the text. If there is no space between
    a tag and its neighbour, the joiner ￭ is yielded between them.
    """
    after_space = True
    after_tag = False
    for part, is_tag in preprocessing.split(text):
        touches_previous = not (after_space or part[0].isspace())
        if touches_previous and (is_tag or after_tag):
            yield JOINER
        if is_tag:
            yield part
        else:
            for chunk in part.split():
                yield from split(chunk)
        after_space = part[-1].isspace()
        after_tag = is_tag


def _split_chunk(chunk: str) -> list[str]:
    """Split a text without white space into words and punctuation marks.

    The joiner ￭ marks that there was no space between two neighbours. If the right neighbour is a
    punctuation mark, the joiner is attached to its start: `go!` becomes `go` and `￭!`. Otherwise it
    is attached to the end of the left neighbour: `(go` becomes `(￭` and `go`.
    """
    matches = _pattern().findall(chunk)
    pieces = [NO_PIECE if JOINER in match else match for match in matches]
    for right in range(1, len(pieces)):
        left = right - 1
        # Two words are never adjacent, so at least one of the two pieces is a punctuation mark. It
        # gets the joiner.
        if not _is_word(matches[right]):
            pieces[right] = pieces[right] and JOINER + pieces[right]
        else:
            pieces[left] = pieces[left] and pieces[left] + JOINER
    return pieces


def _is_word(piece: str) -> bool:
    return piece[0].isalnum() or piece[0] == "_" or category(piece[0])[0] == "M"


def unmarked(piece: str) -> str:
    """Return a piece without the joiners ￭ at its start and end.

    There are two exceptions. The piece ￭ is returned unchanged. For the empty piece NO_PIECE, which
    replaces a word that contains the character ￭, the result is ￭.
    """
    return JOINER if piece in (NO_PIECE, JOINER) else piece.strip(JOINER)


def join_words(pieces: Iterable[str]) -> list[str]:
    """Return the text that each token adds to the decoded text.

    This is the piece of the token without joiners, with a space before it. The space is left out
    before the first token, and where a joiner ￭ connects the token to the previous one.
    """
    surfaces = []
    space_before = False
    for piece in pieces:
        if not piece:
            surfaces.append("")
            continue
        text = piece.strip(JOINER)
        space = " " if space_before and not piece.startswith(JOINER) else ""
        surfaces.append(space + text)
        space_before = not piece.endswith(JOINER)
    return surfaces


class WhitespaceTokenizer(VocabularyTokenizer):
    """Splits text at white space only. Use it for labels, phonemes and tokenised text ("do n't").

    The string "<unk>", which corpora such as WikiText contain, is UNKNOWN. If there is no space
    between a tag and its neighbour, the token ￭ is put between them.

    For a text x of known tokens, decode(encode(x)) is the preprocessed x with these exceptions:
    each run of white space becomes one space, and white space at both ends is removed.
    """

    kind: ClassVar[str] = "whitespace"

    @classmethod
    def train(cls, lines: Iterable[str], preprocessing: Preprocessing, size: int) -> Self:
        """Build a tokenizer whose vocabulary is the most frequent tokens of these lines."""
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(split_chunks(line, preprocessing, _keep_chunk))
        del counts[NO_PIECE], counts[SPECIAL_TOKENS[UNKNOWN]]
        reserved = _reserved_pieces(preprocessing)
        return cls(Vocabulary.from_counts(counts, reserved, size), preprocessing)

    def split(self, text: str) -> Iterator[str]:
        return split_chunks(text, self.preprocessing, _keep_chunk)

    def unknown_text(self, piece: str) -> str:
        return unmarked(piece)

    def surfaces(self, pieces: Sequence[str]) -> list[str]:
        return join_words(pieces)


def _keep_chunk(chunk: str) -> tuple[str]:
    """Return the chunk, which contains no white space, as one token.

    If the chunk contains the joiner ￭, return NO_PIECE, which is encoded as UNKNOWN.
    """
    return (NO_PIECE if JOINER in chunk else chunk,)
