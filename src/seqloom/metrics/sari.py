"""SARI: scores the words that a simplified sentence adds, keeps or deletes, compared to its
source."""

from collections import Counter
from collections.abc import Iterator, Sequence

from seqloom.core.errors import DataError
from seqloom.metrics.score import References, Score, check_references

ORDERS = range(1, 5)
SIGNATURE = "corpus|del:f1|n:1-4|case:lc|tok:13a"

Ngrams = Counter[tuple[str, ...]]


class _OperationCounts:
    """Counts of one operation (add, keep or delete) over a corpus.

    system:     number of n-grams to which the outputs apply the operation
    references: number of n-grams to which the references apply it
    both:       number of n-grams to which both apply it
    """

    def __init__(self) -> None:
        self.both = self.system = self.references = 0

    def add(self, system: Ngrams, references: Ngrams) -> None:
        self.both += (system & references).total()
        self.system += system.total()
        self.references += references.total()

    def f1(self) -> float:
        """Return the F1 of this operation (add, keep or delete), from 0 to 1."""
        total = self.system + self.references
        return 2 * self.both / total if total else 0.0


Counts = dict[tuple[int, str], _OperationCounts]
"""(n-gram length, operation) -> counts"""


def sari(sources: Sequence[str], hypotheses: Sequence[str], references: References) -> Score:
    """Corpus SARI, 0 to 100 (Xu et al. 2016).

    Compared to the source, outputs and references add, keep and delete n-grams. SARI is the mean of
    the F-scores of these three operations for 1- to 4-grams. A kept or deleted n-gram is weighted
    by the number of references that also keep or delete it. An added n-gram counts once. Counts are
    summed over the corpus, as in EASSE (Alva-Manchego et al. 2019).
    """
    from sacrebleu.tokenizers.tokenizer_13a import (
        Tokenizer13a,  # imported on first use, see bleu.py
    )

    check_references(hypotheses, references)
    if len(sources) != len(hypotheses):
        raise DataError(
            f"the outputs cannot be scored: there are {len(sources):,} sources and "
            f"{len(hypotheses):,} hypotheses; give one hypothesis for each source"
        )
    tokenize = Tokenizer13a()  # type: ignore[no-untyped-call]
    counts: Counts = {
        (order, name): _OperationCounts() for order in ORDERS for name in ("add", "keep", "delete")
    }
    for source, output, texts in zip(sources, hypotheses, references, strict=True):
        words, output_words, *reference_words = (
            tokenize(text.lower()).split() for text in (source, output, *texts)
        )
        for order in ORDERS:
            _count_operations(
                _ngrams(words, order),
                _ngrams(output_words, order),
                [_ngrams(reference, order) for reference in reference_words],
                counts,
                order,
            )
    value = 100 * sum(operation.f1() for operation in counts.values()) / len(counts)
    return Score("SARI", value, SIGNATURE, True)


def _count_operations(
    source: Ngrams, output: Ngrams, references: list[Ngrams], counts: Counts, order: int
) -> None:
    all_references = sum(references, Ngrams())
    # Multiply by the number of references, because `all_references` is a sum over all of them.
    source_weighted, output_weighted = (
        Ngrams({ngram: count * len(references) for ngram, count in ngrams.items()})
        for ngrams in (source, output)
    )
    counts[order, "add"].add(_new(output, source), _new(all_references, source))
    counts[order, "keep"].add(source_weighted & output_weighted, source_weighted & all_references)
    counts[order, "delete"].add(source_weighted - output_weighted, source_weighted - all_references)


def _new(ngrams: Ngrams, source: Ngrams) -> Ngrams:
    """Return the n-grams of `ngrams` that are not in `source`, each with a count of 1."""
    return Ngrams(set(ngrams) - set(source))


def _ngrams(words: list[str], order: int) -> Ngrams:
    return Ngrams(_windows(words, order))


def _windows(words: list[str], order: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(order)), strict=False)
