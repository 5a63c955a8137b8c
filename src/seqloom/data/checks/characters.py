"""Finds problems that are hard to see in a text: text that is not in the Unicode form NFC,
invisible characters, and words that mix letters of look-alike scripts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from unicodedata import category, is_normalized, name

MAX_LISTED = 3
"""Maximum number of lines that a warning lists."""


@dataclass
class LineSample:
    """Counts the lines with a certain problem, and lists the first few of these lines."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        """Count a line. `line` is its location (file:line), optionally followed by details."""
        self.count += 1
        if len(self.first) < MAX_LISTED:
            self.first.append(line)

    def extend(self, other: "LineSample") -> None:
        """Add the lines that `other` has counted."""
        self.count += other.count
        self.first = (self.first + other.first)[:MAX_LISTED]

    def __bool__(self) -> bool:
        return self.count > 0

    def __str__(self) -> str:
        return "; ".join(self.first) + ("; …" if self.count > len(self.first) else "")


@dataclass
class CharacterStatistics:
    """The lines with unusual characters, in the sources or in the targets of a split."""

    not_nfc: LineSample = field(default_factory=LineSample)
    """Lines that are not in the Unicode normalisation form NFC."""
    invisible: LineSample = field(default_factory=LineSample)
    mixed_scripts: LineSample = field(default_factory=LineSample)

    def add(self, text: str, where: str) -> None:
        """Check a text for unusual characters, and count it if it has any.

        where: location of the text (file:line)
        """
        if not is_normalized("NFC", text):
            self.not_nfc.add(where)
        if character := next(invisible_characters(text), ""):
            label = name(character, "CONTROL CHARACTER")
            self.invisible.add(f"{where}: U+{ord(character):04X} {label}")
        if word := next(mixed_script_words(text), ""):
            self.mixed_scripts.add(f"{where}: {word!r}")

    def extend(self, other: "CharacterStatistics") -> None:
        """Add the lines that `other` has counted, for example in another file."""
        self.not_nfc.extend(other.not_nfc)
        self.invisible.extend(other.invisible)
        self.mixed_scripts.extend(other.mixed_scripts)


LAST_FORMAT = 0xE007F
"""The highest code point of a control or format character."""
ZWNJ, ZWJ = "\u200c", "\u200d"
_JOINING = re.compile("[\u0600-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u18af\u1900-\u1cff]")
"""Characters of scripts whose spelling uses ZWJ and ZWNJ: Arabic, Syriac, the Indic scripts,
Tibetan, Myanmar, Khmer, Mongolian and their relatives."""
_VISIBLE_FORMATS = re.compile(
    # Signs that enclose or precede a number, and the Mongolian vowel separator
    "[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u180e\U000110bd\U000110cd"
    # Joiners of hieroglyphs, and controls of shorthand and of musical notation
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a]"
)
"""Format characters that are visible, or that the spelling of a script needs."""
_EMOJI_TAGS = re.compile("\U0001f3f4[\U000e0020-\U000e007f]+")
"""The flag of a region, such as that of Scotland: a black flag and invisible letters."""


@cache
def _invisible_pattern() -> re.Pattern[str]:
    """Return a pattern that matches control and format characters. Tabs, line breaks and format
    characters that are visible are excluded."""
    characters = (chr(code) for code in range(LAST_FORMAT + 1))
    invisible = "".join(
        re.escape(character)
        for character in characters
        if category(character) in ("Cc", "Cf")
        and character not in "\t\n\r\v\f"
        and not _VISIBLE_FORMATS.match(character)
    )
    return re.compile(f"[{invisible}]")


def invisible_characters(text: str) -> Iterator[str]:
    """Yield the invisible characters of a text: control and format characters except tabs and line
    breaks.

    Characters that a script or an emoji needs are left out, such as the zero-width non-joiner in
    Persian words.
    """
    text = _EMOJI_TAGS.sub("", text)
    for match in _invisible_pattern().finditer(text):
        character, index = match[0], match.start()
        before, after = text[index - 1 : index], text[index + 1 : index + 2]
        if character in (ZWNJ, ZWJ) and _is_joined(before, character, after):
            continue
        yield character


def _is_joined(before: str, joiner: str, after: str) -> bool:
    """Return True if a zero-width joiner or non-joiner is needed between two characters.

    Some scripts, such as Arabic, and some emoji need these invisible characters.

    before, after: the characters before and after the joiner; "" at the start or end of the text
    joiner:        ZWJ (joiner) or ZWNJ (non-joiner)
    """
    if _JOINING.match(before):
        # ZWJ at the end of a word selects a form of its last letter.
        return joiner == ZWJ or bool(_JOINING.match(after))
    is_after_emoji = before != "" and (category(before) in ("So", "Sk") or before == "\ufe0f")
    return joiner == ZWJ and is_after_emoji and after != "" and category(after) == "So"


_LATIN = "A-Za-zÀ-ÖØ-öø-ɏḀ-ỿ"
_GREEK = "Ͱ-ͳͶͷͻ-ͽΆΈ-Ͽἀ-ῼ"
_CYRILLIC = "Ѐ-ԯ"
_OTHER = rf"(?:[^\W{_LATIN}{_GREEK}{_CYRILLIC}]|[\u0300-\u036f])*"
"""Combining marks, digits and letters of other scripts."""
_CHANGE_OF_SCRIPT = re.compile(
    rf"[{_LATIN}]{_OTHER}[{_GREEK}{_CYRILLIC}]|[{_GREEK}{_CYRILLIC}]{_OTHER}[{_LATIN}]"
)
_WORD = re.compile(r"[\w\u0300-\u036f]+")
# Pairs of letters that look the same in most fonts, from confusables.txt (UTS #39)
_LATIN_LIKE_CYRILLIC, _CYRILLIC_LIKE_LATIN = (
    "ABCEHIJKMOPSTXYaceijopsxyh",
    "АВСЕНІЈКМОРЅТХУасеіјорѕхуһ",
)
_LATIN_LIKE_GREEK, _GREEK_LIKE_LATIN = "ABEHIKMNOPTXYZo", "ΑΒΕΗΙΚΜΝΟΡΤΧΥΖο"
MIN_GREEK_WORD = 3
"""Minimum number of Greek letters in a Greek word. Fewer may be a symbol, as in "MΩ" and "ΔT"."""


def mixed_script_words(text: str) -> Iterator[str]:
    """Yield the words that mix Latin letters with Greek or Cyrillic letters that look alike.

    An example is "Аpple" with a Cyrillic "А". Words such as "kΩ" and "TGFβ" are not yielded,
    because "Ω" and "β" do not look like Latin letters.
    """
    if not _CHANGE_OF_SCRIPT.search(text):
        return
    for word in _WORD.findall(text):
        latin = set(re.findall(f"[{_LATIN}]", word))
        cyrillic = set(re.findall(f"[{_CYRILLIC}]", word))
        greek = re.findall(f"[{_GREEK}]", word)
        if (
            latin
            and cyrillic
            and (cyrillic <= set(_CYRILLIC_LIKE_LATIN) or latin <= set(_LATIN_LIKE_CYRILLIC))
        ) or (
            latin
            and greek
            and (
                set(greek) <= set(_GREEK_LIKE_LATIN)
                or (latin <= set(_LATIN_LIKE_GREEK) and len(greek) >= MIN_GREEK_WORD)
            )
        ):
            yield word
