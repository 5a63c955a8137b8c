"""ROUGE: measures how many words or word sequences a summary and its reference have in common."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from seqloom.metrics.score import References, Score, check_references

SIGNATURE = "f1|refs:max|stem:no|case:lc|tok:letters and digits"

RougeKind = Literal["rouge-1", "rouge-2", "rouge-l"]
Words = list[str]


class Overlap(NamedTuple):
    """The overlap of two texts, counted in words or n-grams.

    common:        number of words or n-grams that both texts have
    first, second: number of words or n-grams of each text
    """

    common: int
    first: int
    second: int

    def f1(self) -> float:
        total = self.first + self.second
        return 2 * self.common / total if total else 0.0


def rouge(kind: RougeKind, hypotheses: Sequence[str], references: References) -> Score:
    """Return ROUGE-1, ROUGE-2 or ROUGE-L, 0 to 100 (Lin 2004).

    The score is the mean of the F-scores of all outputs. ROUGE-1 counts the words that an output
    and its reference have in common. ROUGE-2 counts pairs of consecutive words. ROUGE-L counts the
    words of the longest common subsequence.

    If an output has several references, the one with the highest score is used, as for SciTLDR
    (Cachola et al. 2020). Words are sequences of letters and digits, lower-cased and not stemmed.
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


def rouge_1(hypotheses: Sequence[str], references: References) -> Score:
    """ROUGE-1, 0 to 100."""
    return rouge("rouge-1", hypotheses, references)


def rouge_2(hypotheses: Sequence[str], references: References) -> Score:
    """ROUGE-2, 0 to 100."""
    return rouge("rouge-2", hypotheses, references)


def rouge_l(hypotheses: Sequence[str], references: References) -> Score:
    """ROUGE-L, 0 to 100."""
    return rouge("rouge-l", hypotheses, references)


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
    """Return the length of the longest common subsequence, and the lengths of both texts.

    The subsequence is computed by dynamic programming.
    """
    row = [0] * (len(second) + 1)
    for word in first:
        previous = row
        row = [0]
        for column, second_word in enumerate(second):
            row.append(
                previous[column] + 1
                if word == second_word
                else max(previous[column + 1], row[column])
            )
    return Overlap(row[-1], len(first), len(second))


OVERLAPS: dict[RougeKind, Callable[[Words, Words], Overlap]] = {
    "rouge-1": _ngram_overlap(1),
    "rouge-2": _ngram_overlap(2),
    "rouge-l": _longest_common_subsequence,
}
