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
    lengths that are larger than the length of text i. The k-th n-gram length without a common
    n-gram counts as if 1/2^k n-grams were common (sacrebleu's smoothing "exp").
    """
    lengths = np.array([len(text) for text in texts])
    log_precision = np.zeros((len(texts), len(texts)))
    any_common = np.zeros(log_precision.shape, bool)
    missing = np.zeros(log_precision.shape)  # number of n-gram lengths without a common n-gram
    for order in range(1, BLEU_ORDER + 1):
        common, totals = _common_ngrams(texts, order)
        any_common |= common > 0
        missing += common == 0
        smoothed = np.where(common > 0, common, 0.5**missing)
        has_ngrams = totals[:, None] > 0
        log_precision += np.where(has_ngrams, np.log(smoothed / np.maximum(totals[:, None], 1)), 0)
    orders = np.clip(lengths, 1, BLEU_ORDER)[:, None]
    ratio = lengths / np.maximum(lengths, 1)[:, None]  # (i, j): length of text j / length of text i
    brevity_penalty = np.exp(np.minimum(1 - ratio, 0))
    return np.where(any_common, 100 * brevity_penalty * np.exp(log_precision / orders), 0)
