"""How labels are scored: one for a sequence, or one for each of its positions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from seqloom.metrics.overlap import token_accuracy
from seqloom.metrics.score import References, Score, check_references


def accuracy(hypotheses: Sequence[str], references: References) -> Score:
    """Labels, in percent, that are right; labels are what white space separates."""
    return replace(token_accuracy(hypotheses, references), name="accuracy")


def macro_f1(hypotheses: Sequence[str], references: References) -> Score:
    """The mean over all labels of each one's F1, 0 to 100, so that rare labels count as much as
    frequent ones.

        F1 = 2 · right / (put out + wanted)

    The mean is over the labels that occur in the references or in the outputs. A label is right
    where the first reference has the same one at the same place.
    """
    check_references(hypotheses, references)
    right: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for hypothesis, several in zip(hypotheses, references, strict=True):
        found, wanted = hypothesis.split(), several[0].split()
        right.update(one for one, other in zip(found, wanted, strict=False) if one == other)
        seen.update(found)
        seen.update(wanted)
    each = [2 * right[label] / count for label, count in seen.items()]
    return Score("macro F1", 100 * sum(each) / len(each) if each else 100.0, None, True)
