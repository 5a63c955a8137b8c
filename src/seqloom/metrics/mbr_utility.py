"""Utility functions for minimum Bayes risk decoding. They compute the similarity of pairs of texts.

The results equal sacrebleu's sentence chrF and sentence BLEU. sacrebleu counts the n-grams of both
texts again for every pair; this module counts the n-grams of each text only once.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Literal, assert_never

import numpy as np
from numpy.typing import NDArray

from seqloom.metrics.bleu import bleu_metric

Utility = Literal["chrf", "bleu"]
Matrix = NDArray[np.float64]

CHRF_ORDER, BLEU_ORDER = 6, 4
"""Maximum n-gram length of chrF (in characters) and of BLEU (in words)."""
CHRF_BETA = 2
"""β of the F-score in chrF: recall is β times as important as precision."""


def pairwise_utility(texts: Sequence[str], utility: Utility) -> Matrix:
    """Return the score of every pair of the N texts: (N, N), each from 0 to 100.

    Entry (i, j) is the score of text i with text j as its reference.
    """
    match utility:
        case "chrf":
            return _chrf(["".join(text.split()) for text in texts])
        case "bleu":
            tokenizer = bleu_metric().tokenizer
            return _bleu([tokenizer(text.rstrip()).split() for text in texts])
        case _:
            assert_never(utility)


def expected_utility(texts: Sequence[str], utility: Utility) -> list[float]:
    """Return the mean score of each text, with every other text as its reference in turn.

    A text that occurs several times counts several times as a reference. If there is only one
    text, its score is 100.
    """
    if len(texts) == 1:
        return [100.0]
    counts = Counter(texts)
    distinct = list(counts)
    scores = pairwise_utility(distinct, utility)
    weights = np.array([counts[text] for text in distinct], dtype=np.float64)
    # Subtract the comparison of each text with itself.
    means = (scores @ weights - scores.diagonal()) / (len(texts) - 1)
    by_text = dict(zip(distinct, means.tolist(), strict=True))
    return [by_text[text] for text in texts]


def _common_ngrams(sequences: Sequence[Sequence[str]], order: int) -> tuple[Matrix, Matrix]:
    """Count the n-grams of length `order` in N sequences.

    Returns the number of common n-grams of each pair of sequences, shape (N, N), and the number
    of n-grams of each sequence, shape (N,).
    """
    ids: dict[tuple[str, ...], int] = {}
    ngrams = [
        [
            ids.setdefault(tuple(sequence[i : i + order]), len(ids))
            for i in range(len(sequence) - order + 1)
        ]
        for sequence in sequences
    ]
    # 16-bit integers make the comparison of each row with the whole table (see below) faster.
    table = np.zeros((len(sequences), max(len(ids), 1)), np.uint16)
    for row, sequence_ngrams in enumerate(ngrams):
        np.add.at(table[row], sequence_ngrams, 1)
    common = np.stack([np.minimum(table, counts).sum(axis=1) for counts in table])
    return common.astype(np.float64), table.sum(axis=1).astype(np.float64)


def _chrf(texts: Sequence[str]) -> Matrix:
    """Return chrF of every pair of the N texts: (N, N).

    Entry (i, j) is the score of text i with text j as its reference. chrF is the F-score of mean
    precision and mean recall. The means are over the n-gram lengths for which both texts have
    n-grams.
    """
    size = len(texts)
    precision, recall, orders = np.zeros((3, size, size))
    for order in range(1, CHRF_ORDER + 1):
        common, totals = _common_ngrams(texts, order)
        both_have = (totals[:, None] > 0) & (totals > 0)
        precision += np.where(both_have, common / np.maximum(totals[:, None], 1), 0)
        recall += np.where(both_have, common / np.maximum(totals, 1), 0)
        orders += both_have
    precision /= np.maximum(orders, 1)
    recall /= np.maximum(orders, 1)
    denominator = CHRF_BETA**2 * precision + recall
    return 100 * (1 + CHRF_BETA**2) * precision * recall / np.where(denominator > 0, denominator, 1)


def _bleu(texts: Sequence[Sequence[str]]) -> Matrix:
    """Return the smoothed BLEU of every pair of the N texts: (N, N).

    Entry (i, j) is the score of text i with text j as its reference. The score ignores n-gram
    lengths that are larger than the length of text i.
    """
    from sacrebleu.metrics.bleu import BLEU  # imported on first use, see bleu.py

    counts = [_common_ngrams(texts, order) for order in range(1, BLEU_ORDER + 1)]
    common = np.stack([shared for shared, _ in counts], axis=-1).astype(int)  # (N, N, orders)
    totals = np.stack([total for _, total in counts], axis=-1).astype(int)  # (N, orders)
    scores = np.zeros((len(texts), len(texts)))
    for i, hypothesis in enumerate(texts):
        for j, reference in enumerate(texts):
            scores[i, j] = BLEU.compute_bleu(
                common[i, j].tolist(),
                totals[i].tolist(),
                len(hypothesis),
                len(reference),
                smooth_method="exp",
                effective_order=True,
            ).score
    return scores
