"""Finds the key that a user misspelt by one edit.

The error messages and the JSON Schema of recipes use the same regular expressions, so that an
editor and the command line suggest the same key.
"""

import re
from collections.abc import Iterable
from functools import cache


@cache
def misspellings(word: str) -> str:
    """Return a regular expression that matches `word` and all strings one edit away from it.

    An edit inserts, removes or replaces one character, or swaps two neighbours. The expression
    contains only syntax that Python, JavaScript and Rust have in common.
    """
    return "|".join([*_edits(word), f"{word}."])


def _edits(word: str) -> list[str]:
    """Return regular expressions that match `word` and the strings that are one edit away from it.

    They do not match `word` with an additional character at the end.
    """
    if len(word) == 1:
        # The character is missing, is replaced, or has another one before it.
        return [f".?{word}?"]
    # An edit changes the first half, the second half, or swaps the characters between them. This
    # recursion makes the expression much shorter than a list of the edits at each position.
    half = len(word) // 2
    first, second = word[:half], word[half:]
    return [
        f"{_group(_edits(first))}{second}",
        f"{first}{_group(_edits(second))}",
        f"{first[:-1]}{second[0]}{first[-1]}{second[1:]}",
    ]


def _group(alternatives: list[str]) -> str:
    return alternatives[0] if len(alternatives) == 1 else f"(?:{'|'.join(alternatives)})"


def by_priority(words: Iterable[str]) -> list[str]:
    """Sort words by length, longest first. `find_misspelt` tries them in this order.

    If a misspelt name resembles two words, the longer word is more likely to be meant, because
    users omit a letter more often than they add one.
    """
    return sorted(words, key=len, reverse=True)


def find_misspelt(name: str, words: Iterable[str]) -> str | None:
    """Return the word from which `name` is one edit away; None if there is no such word.

    If there are several such words, return the longest.
    """
    ordered = by_priority(words)
    return next((word for word in ordered if re.fullmatch(misspellings(word), name)), None)
