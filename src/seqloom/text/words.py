"""Words and punctuation marks are tokens, and the text can be put together again."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import ClassVar, Self
from unicodedata import category

from seqloom.text.listed import ListedTokenizer
from seqloom.text.tags import JOINER, Tags
from seqloom.text.vocabulary import Vocabulary


class Words(ListedTokenizer):
    """Words and punctuation marks, each a token; rare ones are UNKNOWN.

    A punctuation mark carries the joiner ￭ on the side where no space stands between it and its
    neighbour, so that words look the same wherever they stand:

        He said: "Don't go!"   ->   He said ￭: "￭ Don't go ￭! ￭"

    A tag that touches its neighbour gets a joiner token of its own. decode(encode(x)) is x with
    every run of white space made one space, for every text of known words. The joiner itself,
    should a text contain it, is UNKNOWN.
    """

    kind: ClassVar[str] = "words"

    @classmethod
    def train(
        cls, lines: Iterable[str], tags: Tags, lowercase: bool, size: int, min_count: int
    ) -> Self:
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(split_words(line, tags, lowercase))
        del counts[UNSPEAKABLE]
        reserved = (*tags.names, JOINER) if tags.names else ()
        return cls(Vocabulary.count(counts, reserved, size, min_count), tags, lowercase)

    def cut(self, text: str) -> Iterator[str]:
        return split_words(text, self.tags, self.lowercase)

    def surfaces(self, pieces: Sequence[str]) -> list[str]:
        return join_words(pieces)


UNSPEAKABLE = ""
"""Stands for a mark that cannot be a piece; no vocabulary holds it."""


_MARK_CODES = (*range(0x20000), *range(0xE0100, 0xE01F0))
"""All combining marks are among these."""


@cache
def _pattern() -> re.Pattern[str]:
    """A word (letters, digits, apostrophes inside), or another character; each with its accents."""
    # Vowel signs of many scripts are combining marks, which \w leaves out.
    marks = "".join(chr(code) for code in _MARK_CODES if category(chr(code))[0] == "M")
    letter = rf"[\w{marks}]"
    return re.compile(rf"{letter}+(?:['’]{letter}+)*|\S[{marks}]*")


def split_words(text: str, tags: Tags, lowercase: bool) -> Iterator[str]:
    return split_chunks(text, tags, lowercase, _split_chunk)


def split_chunks(
    text: str, tags: Tags, lowercase: bool, split: Callable[[str], Iterable[str]]
) -> Iterator[str]:
    """Tags, and the tokens into which each text without spaces between them is split."""
    folded = tags.lower(text) if lowercase else text
    before_is_space = True
    after_tag = False
    for part, is_tag in tags.split(folded):
        touches = not (before_is_space or part[0].isspace())
        if touches and (is_tag or after_tag):
            yield JOINER
        if is_tag:
            yield part
        else:
            for chunk in part.split():
                yield from split(chunk)
        before_is_space = part[-1].isspace()
        after_tag = is_tag


def _split_chunk(chunk: str) -> list[str]:
    """The tokens of a text without spaces."""
    found = _pattern().findall(chunk)
    pieces = [UNSPEAKABLE if JOINER in piece else piece for piece in found]
    for right in range(1, len(pieces)):
        left = right - 1
        # Two words never meet: one of the two is a mark, and the mark carries the joiner.
        if not _is_word(found[right]):
            pieces[right] = pieces[right] and JOINER + pieces[right]
        else:
            pieces[left] = pieces[left] and pieces[left] + JOINER
    return pieces


def _is_word(piece: str) -> bool:
    return piece[0].isalnum() or piece[0] == "_" or category(piece[0])[0] == "M"


def join_words(pieces: Iterable[str]) -> list[str]:
    """What each token adds to the text: itself without joiners, a space before it if due."""
    surfaces = []
    space_due = False
    for piece in pieces:
        if not piece:
            surfaces.append("")
            continue
        text = piece.strip(JOINER)
        space = " " if space_due and not piece.startswith(JOINER) else ""
        surfaces.append(space + text)
        space_due = not piece.endswith(JOINER)
    return surfaces
