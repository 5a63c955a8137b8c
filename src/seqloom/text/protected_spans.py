"""Protected spans: parts of a source text that a model cannot translate, such as URLs, emoji and tags.

A prediction copies them unchanged from the source to the output.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from unicodedata import category, digit

from seqloom.text.glossary import WITHOUT_SPACES
from seqloom.text.tokenizer import Tokenizer
from seqloom.text.vocabulary import UNKNOWN

Span = tuple[int, int]
"""Start and end of a part of a text."""

MAX_CLUSTER_LENGTH = 64
"""Maximum number of characters that are treated as one visible character. Real ones are shorter."""

_JOINER = "\u200d"  # joins emoji, for example to a family
_CONTINUES = re.compile("[\ufe0e\ufe0f\u200d\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
"""Characters that belong to the emoji before them: variants, joiners, keycaps, skin tones, tags."""
_PICTOGRAPH = (
    "[\u231a\u231b\u23e9-\u23f3\u23f8-\u23fa\u2600-\u27bf\u2b1b\u2b1c\u2b50\u2b55"
    "\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff]"
)
_MODIFIERS = "[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*+"
_EMOJI = (
    f"(?:{_PICTOGRAPH}{_MODIFIERS}(?:\u200d{_PICTOGRAPH}{_MODIFIERS})*+"
    "|[\U0001f1e6-\U0001f1ff]{1,2}|[0-9#*]\ufe0f?\u20e3|[\U0001f3fb-\U0001f3ff])"
)
_PLACEHOLDER = r"""
    \{\{\s*+[^\s{}]*+\s*+\}\}  # {{0}} {{ name }}
    | \$?\{[^\s{}]*+\}  # {name} {0:.2f} {} ${name}
    | (?<![\d%])%(?:\(\w++\)|\d++\$)?[-+#0]*+\d*+(?:\.\d++)?[sdiufxXeEgGc@](?!\w)  # %s %(name)s %1$d %.2f
    | </?[A-Za-z][\w:.-]*+(?:\s++[\w:.-]++(?:=(?:"[^"<>]*+"|'[^'<>]*+'|[^\s"'<>/]++))?)*+\s*+/?>  # <b> </b> <br/>
"""
"""Placeholders of programs, and tags. Possessive quantifiers prevent backtracking."""
_IS_PLACEHOLDER = re.compile(_PLACEHOLDER, re.VERBOSE)
_SPANS = re.compile(
    r"""
    (?P<url>(?:https?://|ftp://|www\.)[^\s<>"“”„«»。，、；！？（）「」『』]*[^\s<>"“”„«»。，、；！？（）「」『』.,;:!?'’)\]}…])
    | (?P<email>(?<![\w.+%-])[\w+%-]++(?:\.[\w+%-]++)*+@[\w-]++(?:\.[\w-]++)++)
    """
    + f"| (?P<placeholder>{_PLACEHOLDER})"
    + f"| (?P<emoji>{_EMOJI}(?:\\s*{_EMOJI})*+)",
    re.VERBOSE,
)
_MAY_BE_SPAN = re.compile("[@%<{\u20e3\u231a-\U0010ffff]|://|www\\.")
"""Occurs in every match of `_SPANS`. A search for it is much faster."""
_INLINE_TAG = re.compile(
    r"</?(?:a|abbr|b|bdi|bdo|big|cite|code|del|dfn|em|font|g|i|ins|kbd|mark|mrk|q|s|samp|small|span"
    r"|strike|strong|sub|sup|tt|u|var|wbr)(?![\w:.-])[^<>]*+>",
    re.IGNORECASE,
)
"""Tags of HTML and XLIFF that do not separate words."""
_CLOSING = ".,;:!?…)]}"
_NUMBER = re.compile(r"(?<!\d)\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\d)|\d+(?:[.,]\d+)*")
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[.,\s]+(?=\d)")
_WORD = re.compile(r"\S+")
_MASK = "\ufffc"  # object replacement character


def find_spans(text: str, tokenizer: Tokenizer | None = None) -> list[Span]:
    """Return the protected spans of a text, in order. They do not overlap.

    These are URLs, e-mail addresses, placeholders such as {name} and %s, tags such as <b>, emoji,
    and characters that are not in the vocabulary of the tokenizer. If an unknown character is a
    letter, the span is the whole word.

    tokenizer: the source tokenizer. If it is None, or if its tokens are words, unknown characters
               are not protected.
    """
    spans: list[Span] = []
    if _MAY_BE_SPAN.search(text):
        spans += [match.span() for match in _SPANS.finditer(text)]
    if tokenizer is not None and tokenizer.unknown_unit == "character":
        spans += _unknown_spans(text, tokenizer)
    return _merge(spans)


def _unknown_spans(text: str, tokenizer: Tokenizer) -> Iterable[Span]:
    if UNKNOWN not in tokenizer.encode(text):
        return
    known: dict[str, bool] = {}
    for start, end in clusters(text):
        cluster = text[start:end]
        if cluster.isspace():
            continue
        if cluster not in known:
            known[cluster] = UNKNOWN not in tokenizer.encode(cluster)
        if not known[cluster]:
            yield _whole_word(text, start, end)


def _whole_word(text: str, start: int, end: int) -> Span:
    """If a span consists of letters and combining marks, extend the span to the whole word."""
    if not all(_is_letter_or_mark(character) for character in text[start:end]):
        return start, end
    while start > 0 and _is_word_character(text[start - 1]):
        start -= 1
    while end < len(text) and _is_word_character(text[end]):
        end += 1
    return start, end


def _is_letter_or_mark(character: str) -> bool:
    return category(character)[0] in "LM"


def _is_word_character(character: str) -> bool:
    return character.isalnum() or character in "_'’-" or category(character)[0] == "M"


def _merge(spans: Iterable[Span]) -> list[Span]:
    """Sort spans and merge those that overlap or touch."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def clusters(text: str) -> Iterable[Span]:
    """Yield the start and end of each visible character of a text.

    A visible character is a character with its combining marks, or an emoji with its modifiers and
    the emoji that are joined to it.
    """
    start = 0
    for index in range(1, len(text) + 1):
        too_long = index - start >= MAX_CLUSTER_LENGTH
        if index == len(text) or too_long or not _continues(text, index):
            yield start, index
            start = index


def cluster_start(text: str, index: int) -> int:
    """Return a position near `index` at which the text can be split between visible characters.

    This is the start of the visible character that contains `index`. If that is the first visible
    character of the text, the result is its end instead, because a split at the start would leave
    an empty part. If the visible character is the whole text or very long, the result is `index`.
    """
    start = index
    while start > 0 and index - start < MAX_CLUSTER_LENGTH and _continues(text, start):
        start -= 1
    if start > 0 and not _continues(text, start):
        return start
    end = index
    while end < len(text) and end - index < MAX_CLUSTER_LENGTH and _continues(text, end):
        end += 1
    return end if end < len(text) and not _continues(text, end) else index


def _continues(text: str, index: int) -> bool:
    """True if the character at this index belongs to the visible character before it."""
    character, previous = text[index], text[index - 1]
    if character.isascii():
        return False
    if "\U0001f1e6" <= character <= "\U0001f1ff":  # two of them are a flag
        before = re.search("[\U0001f1e6-\U0001f1ff]*$", text[max(0, index - 64) : index])
        return before is not None and len(before[0]) % 2 == 1
    if "\u1160" <= character <= "\u11ff":  # vowels and final consonants of decomposed Hangul
        return "\u1100" <= previous <= "\u11ff"
    return previous == _JOINER or bool(_CONTINUES.match(character)) or category(character)[0] == "M"


@dataclass(frozen=True)
class ProtectedText:
    """A text in three parts: protected spans at its start, a core, and protected spans at its end.

    leading:   the spans at the start of the text, with the white space around them
    core:      the text between `leading` and `trailing`, which the model translates. Empty if there
               is nothing to translate.
    trailing:  the spans at the end of the text, with the white space around them
    inner:     the spans inside the core: start and end of each as indices of `core`
    is_active: False if spans are not protected. Then the core is the whole text.
    """

    leading: str
    core: str
    trailing: str
    inner: tuple[Span, ...] = ()
    is_active: bool = True

    @property
    def text(self) -> str:
        """The whole text: `leading`, `core` and `trailing`, joined."""
        return self.leading + self.core + self.trailing

    @property
    def inner_texts(self) -> list[str]:
        return [self.core[start:end] for start, end in self.inner]

    @property
    def masked_core(self) -> str:
        """The core (the text to translate), with its protected spans masked.

        U+FFFC replaces every character of these spans, except white space.
        """
        text = list(self.core)
        for start, end in self.inner:
            text[start:end] = [" " if each.isspace() else _MASK for each in text[start:end]]
        return "".join(text)

    def without_inner(self) -> tuple[str, list[int]]:
        """Return the core (the text to translate) without the protected spans inside it.

        If a span separates two words and has no space on either side, a space replaces it.

        Also returns, for each character of the result, its index in the core. For a space that
        replaces a span, this is the index at which the span starts.
        """
        kept: list[int] = []
        begin = 0
        replaced: set[int] = set()
        for start, end in (*self.inner, (len(self.core), len(self.core))):
            # Of the white space on both sides of a span, one side is kept.
            if kept and self.core[kept[-1]].isspace():
                begin = min(_skip_space(self.core, begin), start)
            kept += range(begin, start)
            if kept and _separates_words(self.core, kept[-1], (start, end)):
                kept.append(start)
                replaced.add(start)
            begin = end
        text = "".join(" " if index in replaced else self.core[index] for index in kept)
        return text, kept


def _separates_words(text: str, previous: int, span: Span) -> bool:
    """True if the text before a span and the word after it need a space if the span is removed.

    previous: index of the last character before the span that is not removed
    """
    start, end = span
    before, after = text[previous], text[end : end + 1]
    ends_word = before.isalnum() or category(before)[0] == "M" or before in _CLOSING
    if not ends_word or not after.isalnum():
        return False
    if WITHOUT_SPACES.match(before) or WITHOUT_SPACES.match(after):
        return False
    # Inline tags and invisible characters, such as soft hyphens, can be inside a word.
    rest = _INLINE_TAG.sub("", text[start:end])
    return any(category(character) != "Cf" for character in rest)


def protect(text: str, spans: Sequence[Span]) -> ProtectedText:
    """Divide a text into spans at its start, a part to translate, and spans at its end.

    text: a text without white space at its ends
    """
    start, end = 0, len(text)
    remaining = list(spans)
    if not _has_letters(text, remaining):
        return ProtectedText(text, "", "")
    while remaining and remaining[0][0] <= start:
        start = _skip_space(text, remaining.pop(0)[1])
    while remaining and remaining[-1][1] >= end:
        end = len(text[: remaining.pop()[0]].rstrip())
    inner = tuple((left - start, right - start) for left, right in remaining)
    return ProtectedText(text[:start], text[start:end], text[end:], inner)


def unprotected(text: str) -> ProtectedText:
    """Return a `ProtectedText` without spans: the model translates the whole text."""
    return ProtectedText("", text, "", is_active=False)


def _skip_space(text: str, index: int) -> int:
    return len(text) - len(text[index:].lstrip())


def _has_letters(text: str, spans: Sequence[Span]) -> bool:
    """True if there is a letter outside the spans."""
    begin = 0
    for start, end in (*spans, (len(text), len(text))):
        if any(character.isalpha() for character in text[begin:start]):
            return True
        begin = end
    return False


def missing_spans(protected: ProtectedText, output: str) -> list[int]:
    """Return which of the spans inside a protected text are missing in an output.

    The result contains the indices of these spans in `protected.inner`. If n spans have the same
    text, the output must contain this text n times. If the output contains it only m < n times, the
    last n - m of the n spans are missing.
    """
    available = {text: output.count(text) for text in set(protected.inner_texts)}
    missing = []
    for number, text in enumerate(protected.inner_texts):
        if available[text]:
            available[text] -= 1
        else:
            missing.append(number)
    return missing


@dataclass(frozen=True)
class Insertion:
    """A span that is inserted into an output.

    word:           number of output words before the span
    joins_previous: True if there is no space between the span and the word before it
    joins_next:     True if there is no space between the span and the word after it
    """

    text: str
    word: int
    joins_previous: bool = False
    joins_next: bool = False


def insertion(protected: ProtectedText, number: int, word: int) -> Insertion:
    """Return how to insert a protected span into an output: its place and the spaces around it.

    Usually there is a space on both sides of the span. Punctuation marks, placeholders and tags are
    different: if the source has no space before the span, the output has none there either. If the
    source has a space before the span but none after it, the output has none after it either.

    number: index of the span in `protected.inner`, which lists the spans inside the text
    word:   number of output words before the span
    """
    start, end = protected.inner[number]
    text = protected.core[start:end]
    is_mark = all(category(character)[0] == "P" for character in text)
    can_join = is_mark or _IS_PLACEHOLDER.match(text) is not None
    space_before = protected.core[start - 1 : start].isspace()
    space_after = protected.core[end : end + 1].isspace()
    return Insertion(
        text,
        word,
        joins_previous=can_join and not space_before,
        joins_next=can_join and space_before and not space_after,
    )


def insert_spans(output: str, insertions: Sequence[Insertion]) -> tuple[str, list[int]]:
    """Insert spans between the words of an output.

    Returns the new text, and for each word of the output the index of its first character in the
    new text.
    """
    words = list(_WORD.finditer(output))
    text = ""
    starts: list[int] = []
    for number in range(len(words) + 1):
        gap_start = words[number - 1].end() if number else 0
        gap_end = words[number].start() if number < len(words) else len(output)
        gap = output[gap_start:gap_end]
        here = [each for each in insertions if min(each.word, len(words)) == number]
        if here:
            text = text.rstrip()
            for each in here:
                if each.joins_previous:
                    text = text.rstrip()
                elif text and not text[-1].isspace():
                    text += " "
                text += each.text if each.joins_next else f"{each.text} "
            if number == len(words):
                text = text.rstrip() + gap
        else:
            text += gap
        if number < len(words):
            starts.append(len(text))
            text += words[number][0]
    return text, starts


def missing_numbers(source: str, output: str) -> list[str]:
    """Return the numbers with at least two digits that a source contains and its output does not.

    Full stops, commas and spaces between digits are ignored: 1,234 and 1.234 are the same number.
    Whole numbers are compared: 312 does not contain the number 12.
    """
    joined, spaced = _plain_digits(output), _plain_digits(output, space=" ")
    numbers = dict.fromkeys(match[0] for match in _NUMBER.finditer(source))
    return [
        number
        for number in numbers
        for digits in [_plain_digits(number)]
        # The first test is fast. The second one also compares the ends of the number.
        if len(digits) > 1 and (digits not in joined or not _contains_number(spaced, digits))
    ]


def _contains_number(text: str, digits: str) -> bool:
    """True if a text contains this number as a whole.

    text: a text that `_plain_digits` returned. A space in it can separate two numbers or the groups
          of one number: "12 300" contains 12, 300 and 12300
    """
    pattern = r"(?<!\d)" + " ?".join(digits) + r"(?!\d)"
    return re.search(pattern, text) is not None


def _plain_digits(text: str, space: str = "") -> str:
    """Remove separators between digits, and write the digits of all scripts as 0 to 9.

    A separator consists of full stops, commas and white space.

    space: string that replaces a separator with white space
    """
    joined = _BETWEEN_DIGITS.sub(
        lambda match: space if any(map(str.isspace, match[0])) else "", text
    )
    if joined.isascii():
        return joined
    return "".join(
        str(digit(character)) if character.isdecimal() else character for character in joined
    )
