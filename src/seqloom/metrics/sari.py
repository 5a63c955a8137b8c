"""SARI: how well words were added, kept and deleted in a simplified sentence."""

from collections import Counter
from collections.abc import Iterator, Sequence

from seqloom.metrics.score import References, Score, check_references

ORDERS = range(1, 5)
SIGNATURE = "corpus|del:f1|n:1-4|case:lc|tok:13a"

Ngrams = Counter[tuple[str, ...]]


class _OperationCounts:
    """Counts of one operation (add, keep or delete) over a corpus: by system, references, both."""

    def __init__(self) -> None:
        self.both = self.system = self.references = 0

    def add(self, system: Ngrams, references: Ngrams) -> None:
        self.both += (system & references).total()
        self.system += system.total()
        self.references += references.total()

    def f1(self) -> float:
        """2 · both / (system + references), the harmonic mean of precision and recall"""
        total = self.system + self.references
        return 2 * self.both / total if total else 0.0


Counts = dict[tuple[int, str], _OperationCounts]
"""By n-gram order and operation."""


def sari(sources: Sequence[str], hypotheses: Sequence[str], references: References) -> Score:
    """Corpus SARI, 0 to 100 (Xu et al. 2016): the mean of three F-scores over 1- to 4-grams, for the
    n-grams that were added, kept and deleted relative to the source.

    Kept and deleted n-grams are weighted by the number of references that agree; added n-grams
    count once. Counts are summed over the corpus, as in EASSE (Alva-Manchego et al. 2019).
    """
    from sacrebleu.tokenizers.tokenizer_13a import (
        Tokenizer13a,  # imported on first use, see bleu.py
    )

    check_references(hypotheses, references)
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
    # Multiplied by the number of references, to be comparable with all of them together.
    source_weighted, output_weighted = (
        Ngrams({ngram: count * len(references) for ngram, count in ngrams.items()})
        for ngrams in (source, output)
    )
    counts[order, "add"].add(_new(output, source), _new(all_references, source))
    counts[order, "keep"].add(source_weighted & output_weighted, source_weighted & all_references)
    counts[order, "delete"].add(source_weighted - output_weighted, source_weighted - all_references)


def _new(ngrams: Ngrams, source: Ngrams) -> Ngrams:
    """The n-grams that the source does not have, each once."""
    return Ngrams(set(ngrams) - set(source))


def _ngrams(words: list[str], order: int) -> Ngrams:
    return Ngrams(_windows(words, order))


def _windows(words: list[str], order: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(order)), strict=False)
