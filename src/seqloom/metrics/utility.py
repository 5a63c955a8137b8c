"""How like each other texts are, every pair of them: what minimum-Bayes-risk decoding goes by.

The numbers are sacrebleu's sentence chrF and sentence BLEU. Its own functions count the n-grams of
both texts anew for every pair; here each text is counted once and the pairs are made of counts.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Literal, assert_never

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU

from seqloom.metrics.bleu import bleu_metric

Utility = Literal["chrf", "bleu"]
Matrix = NDArray[np.float64]

CHARACTERS, WORDS = 6, 4
"""The longest n-grams of chrF and of BLEU."""
RECALL = 2
"""chrF's β: recall counts this many times as much as precision."""


def pairwise(texts: Sequence[str], utility: Utility) -> Matrix:
    """(N, N), 0 to 100: row i is text i scored with each of the texts as its reference."""
    match utility:
        case "chrf":
            return _chrf(["".join(text.split()) for text in texts])
        case "bleu":
            cut = bleu_metric().tokenizer
            return _bleu([cut(text.rstrip()).split() for text in texts])
        case _:
            assert_never(utility)


def expected(texts: Sequence[str], utility: Utility) -> list[float]:
    """For each text its mean utility with all the others as references; 100 if it has none.

    A text that comes several times is compared once and counts as often as it comes.
    """
    if len(texts) == 1:
        return [100.0]
    counts = Counter(texts)
    distinct = list(counts)
    scores = pairwise(distinct, utility)
    weights = np.array([counts[text] for text in distinct], dtype=np.float64)
    # Every text is one of its own references; that one is taken out again.
    means = (scores @ weights - scores.diagonal()) / (len(texts) - 1)
    known = dict(zip(distinct, means.tolist(), strict=True))
    return [known[text] for text in texts]


def _overlap(sequences: Sequence[Sequence[str]], size: int) -> tuple[Matrix, Matrix]:
    """(N, N) n-grams that two sequences have in common, and (N,) how many each has."""
    numbers: dict[tuple[str, ...], int] = {}
    grams = [
        [
            numbers.setdefault(tuple(one[i : i + size]), len(numbers))
            for i in range(len(one) - size + 1)
        ]
        for one in sequences
    ]
    # Small numbers, because this table is read as often as there are sequences.
    table = np.zeros((len(sequences), max(len(numbers), 1)), np.uint16)
    for row, found in enumerate(grams):
        np.add.at(table[row], found, 1)
    common = np.stack([np.minimum(table, one).sum(axis=1) for one in table])
    return common.astype(np.float64), table.sum(axis=1).astype(np.float64)


def _chrf(texts: Sequence[str]) -> Matrix:
    """F of the mean precision and the mean recall, over the orders that both texts have."""
    size = len(texts)
    precision, recall, orders = np.zeros((3, size, size))
    for order in range(1, CHARACTERS + 1):
        common, totals = _overlap(texts, order)
        there = (totals[:, None] > 0) & (totals > 0)
        precision += np.where(there, common / np.maximum(totals[:, None], 1), 0)
        recall += np.where(there, common / np.maximum(totals, 1), 0)
        orders += there
    precision /= np.maximum(orders, 1)
    recall /= np.maximum(orders, 1)
    below = RECALL**2 * precision + recall
    return 100 * (1 + RECALL**2) * precision * recall / np.where(below > 0, below, 1)


def _bleu(texts: Sequence[Sequence[str]]) -> Matrix:
    """BLEU of a sentence: orders that it is too short for do not count, others are smoothed."""
    overlaps = [_overlap(texts, order) for order in range(1, WORDS + 1)]
    common = np.stack([both for both, _ in overlaps], axis=-1).astype(int)  # (N, N, orders)
    totals = np.stack([own for _, own in overlaps], axis=-1).astype(int)  # (N, orders)
    scores = np.zeros((len(texts), len(texts)))
    for i, own in enumerate(texts):
        for j, other in enumerate(texts):
            scores[i, j] = BLEU.compute_bleu(
                common[i, j].tolist(),
                totals[i].tolist(),
                len(own),
                len(other),
                smooth_method="exp",
                effective_order=True,
            ).score
    return scores
