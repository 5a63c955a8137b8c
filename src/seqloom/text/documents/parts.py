"""Parts of a document. Some are texts to translate; the others stay as they are."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass


def _unchanged(text: str) -> str:
    return text


@dataclass(frozen=True)
class Part:
    """A part of a document: either a text to translate, or a part that stays as it is.

    raw:    the part as it is written in the document
    source: the text to translate; None if the part stays as it is
    render: converts the translation to the format of the document
    """

    raw: str
    source: str | None = None
    render: Callable[[str], str] = _unchanged


def text_parts(
    raw: str,
    parse: Callable[[str], str] = _unchanged,
    render: Callable[[str], str] = _unchanged,
) -> Iterator[Part]:
    """Yield three parts: leading white space, the text to translate, and trailing white space.

    A text without letters or digits is yielded as one part that is not translated.

    parse:  converts the text from the format of the document to plain text
    render: converts the translation, which is plain text, to the format of the document
    """
    text = raw.strip()
    if not any(character.isalnum() for character in text):
        yield Part(raw)
        return
    start = raw.index(text)
    yield from (Part(raw[:start]), Part(text, parse(text), render), Part(raw[start + len(text) :]))


def split_at(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, bool]]:
    """Split a text at the matches of a pattern.

    Yields the matches and the texts between them, in order. Each is a pair: the string, and True if
    the string is a match.
    """
    position = 0
    for match in pattern.finditer(text):
        yield text[position : match.start()], False
        yield match[0], True
        position = match.end()
    yield text[position:], False


def sources(parts: Iterable[Part]) -> list[str]:
    """Return the texts to translate."""
    return [part.source for part in parts if part.source is not None]


def fill(parts: Iterable[Part], translations: Sequence[str]) -> str:
    """Return the document with translations in place of the texts to translate."""
    remaining = iter(translations)
    return "".join(
        # A line break in a translation could end a paragraph or a cue.
        part.raw if part.source is None else part.render(" ".join(next(remaining).split()))
        for part in parts
    )


def structure(parts: Iterable[Part]) -> list[str]:
    """Return the strings before, between and after the texts to translate."""
    between = [""]
    for part in parts:
        if part.source is None:
            between[-1] += part.raw
        else:
            between.append("")
    return between
