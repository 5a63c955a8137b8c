"""ROUGE: how much of a summary's wording and order a reference shares."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

from seqloom.metrics.score import References, Score, check_references

SIGNATURE = "f1|refs:max|stem:no|case:lc|tok:letters and digits"

Kind = Literal["rouge-1", "rouge-2", "rouge-l"]
Words = list[str]
Overlap = Callable[[Words, Words], tuple[int, int, int]]
"""What two texts share, and what each of them has."""


def rouge(kind: Kind, hypotheses: Sequence[str], references: References) -> Score:
    """ROUGE-1, ROUGE-2 or ROUGE-L, 0 to 100 (Lin 2004): F-scores of shared words, of shared pairs
    of words, or of the longest sequence of words that both have in the same order.

    Of several references the one that fits best counts, as for SciTLDR (Cachola et al. 2020).
    Words are runs of letters and digits, lower-cased and not stemmed.
    """
    check_references(hypotheses, references)
    outputs = [_words(output) for output in hypotheses]
    wanted = [[_words(reference) for reference in several] for several in references]
    overlap = OVERLAPS[kind]
    best = [
        max(_f1(*overlap(output, reference)) for reference in several)
        for output, several in zip(outputs, wanted, strict=True)
    ]
    return Score(kind.upper(), 100 * sum(best) / len(best), SIGNATURE, True)


def _words(text: str) -> Words:
    return re.findall(r"[^\W_]+", text.lower())


def _f1(both: int, one: int, other: int) -> float:
    return 2 * both / (one + other) if one + other else 0.0


def _grams(order: int) -> Overlap:
    def overlap(one: Words, other: Words) -> tuple[int, int, int]:
        ours, theirs = (
            Counter(zip(*(words[start:] for start in range(order)), strict=False))
            for words in (one, other)
        )
        return (ours & theirs).total(), ours.total(), theirs.total()

    return overlap


def _subsequence(one: Words, other: Words) -> tuple[int, int, int]:
    """The length of the longest common subsequence, row by row of its table."""
    row = [0] * (len(other) + 1)
    for word in one:
        before = row
        row = [0]
        for place, theirs in enumerate(other):
            row.append(before[place] + 1 if word == theirs else max(before[place + 1], row[place]))
    return row[-1], len(one), len(other)


OVERLAPS: dict[Kind, Overlap] = {
    "rouge-1": _grams(1),
    "rouge-2": _grams(2),
    "rouge-l": _subsequence,
}
