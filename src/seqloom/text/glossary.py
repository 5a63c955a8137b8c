"""Glossary: pairs of a source phrase and a target phrase.

If a source contains a source phrase, its translation must contain the target phrase.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from unicodedata import category, normalize

from seqloom.core.errors import DataError, NotFoundError

MAX_LISTED = 10
"""Maximum number of invalid lines in an error message."""
WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Characters of scripts without spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""


@dataclass(frozen=True)
class RequiredPhrase:
    """A target phrase that an output must contain, because the source contains a source phrase.

    text:                  the target phrase
    first_word, last_word: indices of the first and the last word of the source phrase in the source
    """

    text: str
    first_word: int
    last_word: int


@dataclass(frozen=True)
class Glossary:
    """Pairs of a source phrase and a target phrase.

    - A phrase matches only whole words: "art" does not match in "party". In scripts without spaces
      between words, such as Chinese, a phrase matches anywhere.
    - A source phrase without capital letters matches regardless of case. A source phrase with a
      capital letter matches only text in the same case.
    - If source phrases overlap in a text, the one that starts first is used. If several start at the
      same place, the longest is used.
    """

    pairs: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, pairs: Mapping[str, str]) -> "Glossary":
        """Build a glossary from {source phrase: target phrase}."""
        return _build([(f"{source!r}", [source, target]) for source, target in pairs.items()], "")

    @cached_property
    def _patterns(self) -> list[tuple[str, re.Pattern[str], str]]:
        """Return (first word, pattern, target phrase) for each pair of phrases.

        The first word is that of the source phrase, in lower case. The pattern finds the source
        phrase.
        """
        return [
            (source.split()[0].casefold(), phrase_pattern(source, source == source.lower()), target)
            for source, target in self.pairs
        ]

    def required(self, text: str) -> list[RequiredPhrase]:
        """Return the target phrase for each occurrence of a source phrase in a text, in order."""
        text = normalize("NFC", text)
        folded = text.casefold()
        patterns = [
            (pattern, target)
            for first_word, pattern, target in self._patterns
            if first_word in folded  # much faster than the pattern, and most phrases do not occur
        ]
        return [
            RequiredPhrase(target, len(text[: start + 1].split()) - 1, len(text[:end].split()) - 1)
            for start, end, target in _find(text, patterns)
        ]


def read_glossary(path: Path) -> Glossary:
    """Read a glossary from a UTF-8 file: `source phrase TAB target phrase` in each line.

    Blank lines are ignored.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise NotFoundError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not valid UTF-8: {error}; convert it to UTF-8") from error
    rows = [
        (f"line {number}", line.split("\t"))
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]
    return _build(rows, f"{path}: ")


def _build(rows: Iterable[tuple[str, list[str]]], where: str) -> Glossary:
    """Build a glossary from rows. Raises a DataError that lists the invalid rows.

    rows:  pairs (name, columns). The name identifies the row in error messages, for example
           "line 3". The columns are the source phrase and the target phrase
    where: start of the error message, such as the path of the file
    """
    targets: dict[str, str] = {}
    problems = []
    for name, columns in rows:
        phrases = [" ".join(normalize("NFC", column).split()) for column in columns]
        if len(phrases) != 2 or not all(phrases):
            problems.append(f"{name}: must be a source phrase, a tab and a target phrase")
        elif targets.setdefault(phrases[0], phrases[1]) != phrases[1]:
            problems.append(
                f"{name}: {phrases[0]!r} already has the target phrase {targets[phrases[0]]!r}; "
                "remove one of the two"
            )
    if not (targets or problems):
        raise DataError(
            f"{where}the glossary is empty; add a line: source phrase, tab, target phrase"
        )
    if problems:
        more = [f"  and {len(problems) - MAX_LISTED:,} more"] if len(problems) > MAX_LISTED else []
        listed = [f"  {problem}" for problem in problems[:MAX_LISTED]]
        raise DataError("\n".join([f"{where}the glossary is not valid:", *listed, *more]))
    return Glossary(tuple(targets.items()))


def phrase_pattern(phrase: str, any_case: bool = False) -> re.Pattern[str]:
    """Return a pattern that finds a phrase. Any white space may separate its words.

    any_case: if True, the pattern ignores upper and lower case
    """
    words = r"\s+".join(map(re.escape, phrase.split()))
    return re.compile(words, re.IGNORECASE if any_case else 0)


def find_phrases(text: str, phrases: Iterable[str]) -> list[tuple[int, int, str]]:
    """Return where phrases occur in a text as whole words: (start, end, phrase), in order.

    Upper and lower case must match. Where phrases overlap, only the one that starts first is
    returned; of several with the same start, only the longest.
    """
    return _find(text, [(phrase_pattern(phrase), phrase) for phrase in dict.fromkeys(phrases)])


def count_phrases(text: str, phrases: Iterable[str]) -> Counter[str]:
    """Return how often each phrase occurs in a text as whole words."""
    return Counter(phrase for _, _, phrase in find_phrases(text, phrases))


def ends_word(phrase: str) -> bool:
    """True if the last character of a phrase belongs to a word, as in "Mr" but not in "Mr."."""
    return phrase != "" and _is_word_character(phrase[-1])


def _find(text: str, patterns: Iterable[tuple[re.Pattern[str], str]]) -> list[tuple[int, int, str]]:
    found = [
        (match.start(), match.end(), bool(pattern.flags & re.IGNORECASE), name)
        for pattern, name in patterns
        for match in pattern.finditer(text)
        if is_boundary(text, match.start()) and is_boundary(text, match.end())
    ]
    # A phrase that must match in its case is preferred to one that matches in any case.
    found.sort(key=lambda each: (each[0], -each[1], each[2]))
    results: list[tuple[int, int, str]] = []
    for start, end, _, name in found:
        if not results or start >= results[-1][1]:
            results.append((start, end, name))
    return results


def is_boundary(text: str, index: int) -> bool:
    """True if the characters before and after this index do not belong to the same word."""
    if index in (0, len(text)):
        return True
    return not (_is_word_character(text[index - 1]) and _is_word_character(text[index]))


def _is_word_character(character: str) -> bool:
    if WITHOUT_SPACES.match(character):
        return False
    return character.isalnum() or character == "_" or category(character)[0] == "M"
