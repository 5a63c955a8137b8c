"""Sentence splitting: splits a text into segments and joins their translations.

White space and line breaks between segments are preserved.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from unicodedata import normalize

from seqloom.text.protected_spans import Span, cluster_start

Fits = Callable[[str], bool]
"""A function that returns True if a text is short enough for one model input."""
FindSpans = Callable[[str], Sequence[Span]]
"""A function that returns the protected spans of a text, such as URLs. A text is not split inside a
span."""

_LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_SENTENCE_END = re.compile(
    r"""
    (?<![.!?…؟۔।॥]) [.!?…؟۔।॥]++ ['"’”»)\]]*+ (?P<space>\s++) (?=\S)  # a stop, then white space
    | (?<![。！？｡]) [。！？｡]++ [」』”）]*+ (?=\S)  # or a stop in a script without spaces
    """,
    re.VERBOSE,
)
# Possessive quantifiers (++) prevent backtracking, so the time is linear in the length of the text.
_ABBREVIATIONS = frozenset(
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
"""Words that end in a full stop without ending a sentence."""
MAX_WORD_LENGTH = 40
SENTENCE_STOPS = (".", "!", "?", "…")
_LAST_STOP = re.compile(r"""[.!?…؟۔।॥。！？｡]['"’”“»«)\]」』）]*$""")
_STOP_WITHOUT_SPACE = re.compile("[。！？｡][」』”）]*$")
_CLAUSE_END = re.compile(r"(?<=[,;:،、；])\s+|\s[–—-]\s")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class Segment:
    """A part of a text that is translated as one model input.

    before: the white space between the previous segment and this one
    """

    before: str
    text: str


@dataclass(frozen=True)
class SegmentedText:
    """The segments of a text, and the white space after the last one."""

    segments: tuple[Segment, ...]
    after: str

    @classmethod
    def of(cls, segments: Sequence[tuple[str, str]], after: str) -> "SegmentedText":
        """Create a segmented text from pairs (white space before the segment, segment)."""
        return cls(tuple(Segment(before, text) for before, text in segments), after)

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(each.before + each.text for each in self.segments) + self.after

    def join(self, translations: Sequence[str]) -> str:
        """Join the translations with the white space that separates the segments.

        Chinese, for example, has no space between sentences, but a translation may need one. So a
        space is inserted if a source sentence ends in a stop such as "。" without a space after it,
        and its translation ends in a stop such as ".".
        """
        return self.join_with_starts(translations)[0]

    def join_with_starts(self, translations: Sequence[str]) -> tuple[str, list[int]]:
        """Join the translations of the segments.

        Returns the joined text, and the index at which each translation starts in this text.
        """
        parts: list[str] = []
        starts: list[int] = []
        length, previous, last = 0, "", ""
        for segment, translation in zip(self.segments, translations, strict=True):
            no_space = not segment.before and bool(_STOP_WITHOUT_SPACE.search(previous))
            insert_space = no_space and last.endswith(SENTENCE_STOPS)
            before = " " if insert_space else segment.before
            starts.append(length + len(before))
            parts += [before, translation]
            length += len(before) + len(translation)
            previous, last = segment.text, translation
        return "".join(parts) + self.after, starts


def ends_like_a_sentence(text: str) -> bool:
    """True if the text ends with a stop such as "." or "。". Quotation marks may follow the stop."""
    return bool(_LAST_STOP.search(text.rstrip()))


def single_segment(text: str) -> SegmentedText:
    """Return the text as one segment. A blank text has no segments."""
    return _separate_white_space([text])


def fits_always(text: str) -> bool:
    """Return True. With this function as `fits`, a model input may have any length."""
    return True


def no_spans(text: str) -> Sequence[Span]:
    """Return no spans. With this function as `find_spans`, a text may be split anywhere."""
    return ()


def split_text(
    text: str, fits: Fits = fits_always, find_spans: FindSpans = no_spans
) -> SegmentedText:
    """Split a text into lines and the lines into sentences.

    Sentences that are too long for one model input are split into parts.

    fits:       decides whether a part is short enough for one model input
    find_spans: returns the protected spans of a text, such as URLs, which are not split
    """
    pieces: list[str] = []
    for line in _split_lines(text):
        for sentence in _split_sentences(line, find_spans):
            pieces += split_until_fitting(sentence, fits, find_spans)
    return _separate_white_space(pieces)


def split_segments(
    segmented: SegmentedText, fits: Fits, find_spans: FindSpans = no_spans
) -> SegmentedText:
    """Split the segments that are too long for one model input, and keep the others.

    fits:       decides whether a part is short enough for one model input
    find_spans: returns the protected spans of a text, such as URLs, which are not split
    """
    pieces: list[str] = []
    for segment in segmented.segments:
        pieces += [segment.before, *split_until_fitting(segment.text, fits, find_spans)]
    return _separate_white_space([*pieces, segmented.after])


def _separate_white_space(pieces: Sequence[str]) -> SegmentedText:
    segments: list[Segment] = []
    before = ""
    for piece in pieces:
        stripped = piece.strip()
        if not stripped:
            before += piece
            continue
        start = piece.index(stripped)
        segments.append(Segment(before + piece[:start], stripped))
        before = piece[start + len(stripped) :]
    return SegmentedText(tuple(segments), before)


def _split_lines(text: str) -> list[str]:
    """Return the lines, each with its line break."""
    return [line for line in re.split(f"(?<=[{_LINE_BREAKS}])", text) if line]


def _split_sentences(line: str, find_spans: FindSpans) -> list[str]:
    """Return the sentences, each with the white space after it.

    A stop inside a protected span, such as a tag with attributes, does not end a sentence.
    """
    ends = [match.end() for match in _SENTENCE_END.finditer(line) if _is_sentence_end(line, match)]
    spans = find_spans(line) if ends else ()
    ends = [end for end in ends if not _is_inside(spans, end)]
    return [line[begin:end] for begin, end in zip([0, *ends], [*ends, len(line)], strict=True)]


def _is_sentence_end(line: str, match: re.Match[str]) -> bool:
    """True if a sentence ends at a stop, such as "." or "?".

    A stop of a script without spaces, such as "。", always ends a sentence. Another stop does not
    end a sentence if a lower-case letter follows. A single full stop also does not end a sentence
    after an abbreviation, an initial or a number.

    match: the stop, and the white space after it
    """
    if match["space"] is None:
        return True
    if line[match.end()].islower():
        return False
    if not match[0].startswith(".") or match[0].startswith(".."):
        return True
    words = line[max(0, match.start() - MAX_WORD_LENGTH) : match.start()].split()
    word = words[-1].lstrip("'\"„“‚‘«»(").lower() if words else ""
    return not (len(word) == 1 or word.isdigit() or "." in word or word in _ABBREVIATIONS)


def split_until_fitting(text: str, fits: Fits, find_spans: FindSpans = no_spans) -> list[str]:
    """Split a text into parts that are short enough for one model input.

    A text that is too long is split near its middle. The halves are split in the same way, until
    each part is short enough or cannot be split. A short text is returned as the only part.
    """
    if fits(text.strip()) or len(text.strip()) < 2:
        return [text]
    end = _split_position(text, find_spans)
    if end is None:
        return [text]
    return [
        *split_until_fitting(text[:end], fits, find_spans),
        *split_until_fitting(text[end:], fits, find_spans),
    ]


def _split_position(text: str, find_spans: FindSpans) -> int | None:
    """Return the index at which to split the text, or None if it cannot be split.

    A text is split at the end of a clause near its middle. If there is none, the text is split at
    the white space closest to its middle. A text without white space is split near its middle, but
    not between a character and its combining marks. No text is split inside a protected span, such
    as a URL or a tag with attributes.
    """
    # Characters count as many times as their decomposed form is long, so that a composed and a
    # decomposed text are split at the same place.
    positions = [0, *accumulate(map(_decomposed_length, text))]
    half = positions[-1] / 2
    clause_ends = [match.end() for match in _CLAUSE_END.finditer(text)]
    central = [end for end in clause_ends if half / 2 <= positions[end] <= 3 * half / 2]
    inner_spaces = [match.end() for match in _SPACE.finditer(text.rstrip()) if match.start()]
    spans = find_spans(text)
    for ends in (central, inner_spaces):
        for end in sorted(ends, key=lambda end: abs(positions[end] - half)):
            if not _is_inside(spans, end):
                return end
    middle = cluster_start(text, max(1, bisect_right(positions, half) - 1))
    for start, end in spans:
        if start < middle < end:
            middle = start if start > 0 else end
    return middle if 0 < middle < len(text) else None


def _is_inside(spans: Sequence[Span], index: int) -> bool:
    """True if a text that is split at this index is split inside a span."""
    before = bisect_left(spans, (index, index)) - 1  # the last span that starts before the index
    return before >= 0 and spans[before][1] > index


@cache
def _decomposed_length(character: str) -> int:
    return len(normalize("NFKD", character))
