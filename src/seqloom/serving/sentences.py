"""Sentences: a long text cut where it may be cut, and put together again.

Nothing is lost: what stands between two parts, white space and line breaks, is kept as it is.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Fits = Callable[[str], bool]
"""Is this text short enough to be read at once?"""

_LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_END = re.compile(
    r"""
    (?<![.!?…]) [.!?…]++ ['"’”»)\]]*+ (?P<space>\s++) (?=\S)  # a full stop, then white space
    | (?<![。！？｡]) [。！？｡]++ [」』”）]*+ (?=\S)               # or a script that needs none
    """,
    re.VERBOSE,
)
# Nothing is tried twice (++), so that no text takes longer than its length.
_NOT_THE_END = frozenset(
    [
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "st",
        "sr",
        "jr",
        "vs",
        "etc",
        "approx",
        "no",
        "vol",
        "fig",
        "inc",
        "ltd",
        "co",
        "bzw",
        "ca",
        "evtl",
        "ggf",
        "inkl",
        "nr",
        "sog",
        "str",
        "usw",
        "vgl",
        "zzgl",
        "hr",
        "fr",
        "geb",
        "tel",
        "mme",
        "mlle",
        "cf",
        "env",
        "art",
        "pp",
    ]
)
"""Words with a full stop behind them that ends no sentence."""
LONGEST_WORD = 40
STOPS = (".", "!", "?", "…")
_SPACELESS = re.compile("[。！？｡][」』”）]*$")
_SOFT = re.compile(r"(?<=[,;:،、；])\s+|\s[–—-]\s")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class Part:
    """What is read at once, and the white space that stands before it."""

    before: str
    text: str


@dataclass(frozen=True)
class Cut:
    """A text in parts, and the white space behind the last."""

    parts: tuple[Part, ...]
    after: str

    def join(self, outputs: Sequence[str]) -> str:
        """The outputs of the parts, with all that stood between them.

        Sentences of a script that puts no space between them get one where the output's does.
        """
        text, read = "", ""
        for part, output in zip(self.parts, outputs, strict=True):
            spaceless = not part.before and bool(_SPACELESS.search(read))
            text += (" " if spaceless and text.endswith(STOPS) else part.before) + output
            read = part.text
        return text + self.after


def whole(text: str) -> Cut:
    """In one part, if there is anything but white space."""
    return _dressed([text])


def cut(text: str, fits: Fits) -> Cut:
    """Into lines, lines into sentences, and sentences that do not fit at the next best places."""
    pieces: list[str] = []
    for line in _lines(text):
        for sentence in _sentences(line):
            pieces += _fitting(sentence, fits)
    return _dressed(pieces)


def _dressed(pieces: Sequence[str]) -> Cut:
    parts: list[Part] = []
    before = ""
    for piece in pieces:
        bare = piece.strip()
        if not bare:
            before += piece
            continue
        start = piece.index(bare)
        parts.append(Part(before + piece[:start], bare))
        before = piece[start + len(bare) :]
    return Cut(tuple(parts), before)


def _lines(text: str) -> list[str]:
    """Each with its line break."""
    return [line for line in re.split(f"(?<=[{_LINE_BREAKS}])", text) if line]


def _sentences(line: str) -> list[str]:
    """Each with the white space behind it."""
    ends = [match.end() for match in _END.finditer(line) if _ends_here(line, match)]
    return [line[begin:end] for begin, end in zip([0, *ends], [*ends, len(line)], strict=True)]


def _ends_here(line: str, match: re.Match[str]) -> bool:
    """Not after abbreviations, initials and numbers, and not before a small letter."""
    if match["space"] is None:
        return True
    if line[match.end()].islower():
        return False
    if not match[0].startswith(".") or match[0].startswith(".."):
        return True
    words = line[max(0, match.start() - LONGEST_WORD) : match.start()].split()
    word = words[-1].lstrip("'\"„“‚‘«»(").lower() if words else ""
    return not (len(word) == 1 or word.isdigit() or "." in word or word in _NOT_THE_END)


def _fitting(text: str, fits: Fits) -> list[str]:
    """Halved until every part fits: behind a comma, else at white space, else anywhere."""
    if fits(text.strip()) or len(text.strip()) < 2:
        return [text]
    end = _middle(text)
    return [*_fitting(text[:end], fits), *_fitting(text[end:], fits)]


def _middle(text: str) -> int:
    """The best place to cut that leaves a quarter or more on both sides."""
    half = len(text) / 2
    for pattern in (_SOFT, _SPACE):
        places = [match.end() for match in pattern.finditer(text)]
        good = [place for place in places if half / 2 <= place <= 3 * half / 2]
        if good:
            return min(good, key=lambda place: abs(place - half))
    return max(1, int(half))
