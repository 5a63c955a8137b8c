"""ROUGE: the overlap between a summary and a reference in words and word order."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from seqloom.metrics.score import References, Score, check_references

SIGNATURE = "f1|refs:max|stem:no|case:lc|tok:letters and digits"

RougeKind = Literal["rouge-1", "rouge-2", "rouge-l"]
Words = list[str]


class Overlap(NamedTuple):
    """Number of units that two texts share, and number of units of each text."""

    common: int
    first: int
    second: int

    def f1(self) -> float:
        total = self.first + self.second
        return 2 * self.common / total if total else 0.0


def rouge(kind: RougeKind, hypotheses: Sequence[str], references: References) -> Score:
    """ROUGE-1, ROUGE-2 or ROUGE-L, 0 to 100 (Lin 2004): F-scores of common words, of common word
    pairs, or of the longest common subsequence of words.

    Of several references, the best match counts, as for SciTLDR (Cachola et al. 2020). Words are
    sequences of letters and digits, lower-cased and not stemmed.
    """
    check_references(hypotheses, references)
    outputs = [_words(output) for output in hypotheses]
    reference_words = [[_words(reference) for reference in texts] for texts in references]
    count_overlap = OVERLAPS[kind]
    best = [
        max(count_overlap(output, reference).f1() for reference in texts)
        for output, texts in zip(outputs, reference_words, strict=True)
    ]
    return Score(kind.upper(), 100 * sum(best) / len(best), SIGNATURE, True)


def _words(text: str) -> Words:
    return re.findall(r"[^\W_]+", text.lower())


def _ngram_overlap(order: int) -> Callable[[Words, Words], Overlap]:
    def count_overlap(first: Words, second: Words) -> Overlap:
        first_ngrams, second_ngrams = (
            Counter(zip(*(words[start:] for start in range(order)), strict=False))
            for words in (first, second)
        )
        common = (first_ngrams & second_ngrams).total()
        return Overlap(common, first_ngrams.total(), second_ngrams.total())

    return count_overlap


def _longest_common_subsequence(first: Words, second: Words) -> Overlap:
    """Computes the table of dynamic programming row by row."""
    row = [0] * (len(second) + 1)
    for word in first:
        previous = row
        row = [0]
        for column, other in enumerate(second):
            row.append(
                previous[column] + 1 if word == other else max(previous[column + 1], row[column])
            )
    return Overlap(row[-1], len(first), len(second))


OVERLAPS: dict[RougeKind, Callable[[Words, Words], Overlap]] = {
    "rouge-1": _ngram_overlap(1),
    "rouge-2": _ngram_overlap(2),
    "rouge-l": _longest_common_subsequence,
}
