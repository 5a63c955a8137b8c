"""SRT subtitles: translates the text of each cue. Numbers, times and tags stay unchanged.

SRT has no way to escape characters. So `srt_text` removes from a translation all characters that a
player would read as markup. These are <, >, { and }, which mark tags, and dashes at the start,
which mark a dialogue.
"""

import re
from collections.abc import Iterator
from functools import partial

from seqloom.core.errors import DataError
from seqloom.text.documents.parts import Part, split_at, text_parts

TIME = re.compile(r"\d{1,3}:\d{2}:\d{2}[,.]\d{1,3}\s*-->\s*\d{1,3}:\d{2}:\d{2}[,.]\d{1,3}(?:\s.*)?")
MARKUP = re.compile(
    r"(?:<[^<>\n]*>|\{[^{}\n]*\}|^(?=[^\S\n]*[-–—]))(?:[^\S\n]*[-–—][-–—\s]*+)?", re.MULTILINE
)
"""Tags, and the dashes at the start of a line or after a tag, which mark a dialogue."""
SPACE = re.compile(r"[ \t\n\r\v\f]+")
"""White space at which a line can be wrapped. A non-breaking space is not among it."""
BREAK = re.compile(" (?![-–—])")
"""A space that can become a line break."""
MIN_WIDTH = 42
"""Translations are wrapped into lines of at most this number of characters, a common limit for
subtitles. If the original cue has a longer line, the length of that line is the limit."""


def srt_parts(content: str, name: str) -> Iterator[Part]:
    """Divide a subtitle file into texts to translate and parts that stay as they are.

    Raises a DataError if a cue is malformed.

    name: name of the file for the error message
    """
    lines = content.split("\n")
    position = 0
    while position < len(lines):
        if not lines[position].strip():
            yield Part(f"{lines[position]}\n")
            position += 1
            continue
        _check_cue(lines, position, name)
        yield Part(f"{lines[position]}\n{lines[position + 1]}\n")
        first = position = position + 2
        while position < len(lines) and lines[position].strip():
            position += 1
        if position > first:
            yield from _text_parts(lines[first:position])
            yield Part("\n")


def _check_cue(lines: list[str], position: int, name: str) -> None:
    """Raise a DataError if no cue starts at this position.

    The first line of a cue contains only its number, the second line its start and end time.

    position: index of the first line
    name:     name of the file for the error message
    """
    if not lines[position].strip().isdecimal():
        raise DataError(
            f"{name}:{position + 1}: expected the number of a cue, not {lines[position]!r:.60}; put "
            "a blank line before each cue, and none inside its text"
        )
    times = lines[position + 1].strip() if position + 1 < len(lines) else ""
    if not TIME.fullmatch(times):
        raise DataError(
            f"{name}:{position + 2}: expected the times of a cue, not {times!r:.60}; write them as "
            "00:01:02,000 --> 00:01:04,500"
        )


def _text_parts(lines: list[str]) -> Iterator[Part]:
    width = max(MIN_WIDTH, *map(len, lines))
    for text, is_markup in split_at(MARKUP, "\n".join(lines)):
        if is_markup:
            yield Part(text)
        else:
            yield from text_parts(text, lambda raw: " ".join(raw.split()), partial(_wrap, width))


def srt_text(text: str) -> str:
    """Return a translation without the characters that are markup in SRT."""
    return re.sub(r"[<>{}]", "", text).lstrip("-–— ")


def _wrap(width: int, text: str) -> str:
    """Wrap a translation into lines.

    A line does not start with a dash, because a player would show it as a new speaker. The dash
    stays with the word before it, so a line can be too long if this word is.
    """
    lines: list[str] = []
    for words in BREAK.split(SPACE.sub(" ", srt_text(text)).strip(" ")):
        if lines and len(lines[-1]) + len(" ") + len(words) <= width:
            lines[-1] += f" {words}"
        else:
            lines.append(words)
    return "\n".join(lines)
