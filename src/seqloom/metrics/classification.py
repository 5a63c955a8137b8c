"""Metrics for labelling, with one label per sequence or one per position."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from seqloom.metrics.error_rates import token_accuracy
from seqloom.metrics.score import References, Score, check_references


def accuracy(hypotheses: Sequence[str], references: References) -> Score:
    """Percentage of correct labels; white space separates labels."""
    return replace(token_accuracy(hypotheses, references), name="accuracy")


def macro_f1(hypotheses: Sequence[str], references: References) -> Score:
    """Mean of the F1 scores of all labels, 0 to 100. Rare labels count as much as frequent ones.

        F1 of a label = 2 · correct / (occurrences in outputs + occurrences in references)

    The mean is over the labels that occur in outputs or references. A label is correct if the
    reference has the same label at the same position. Only the first reference of each output is
    used.
    """
    check_references(hypotheses, references)
    correct: Counter[str] = Counter()
    occurrences: Counter[str] = Counter()
    for hypothesis, texts in zip(hypotheses, references, strict=True):
        predicted, expected = hypothesis.split(), texts[0].split()
        pairs = zip(predicted, expected, strict=False)
        correct.update(label for label, target in pairs if label == target)
        occurrences.update(predicted)
        occurrences.update(expected)
    f1_scores = [2 * correct[label] / count for label, count in occurrences.items()]
    value = 100 * sum(f1_scores) / len(f1_scores) if f1_scores else 100.0
    return Score("macro F1", value, None, True)
