"""Selects examples of an evaluation report."""

import unicodedata
from collections import Counter
from collections.abc import Sequence

from seqloom.inference.evaluation.report import EvaluationReport


def overlap(output: str, references: Sequence[str]) -> tuple[float, float]:
    """Return (word F1, character F1), which measure how much the output overlaps a reference.

    F1 = 2 |o ∩ r| / (|o| + |r|), where o and r are the multisets of words (or characters) of the
    output and the reference in NFC. If there are several references, each value is the maximum over
    the references.

    The pair can be used as a sort key: outputs with equal word F1 are sorted by their character F1.
    """
    output, *references = (unicodedata.normalize("NFC", text) for text in (output, *references))
    words = max(_f1(output.split(), reference.split()) for reference in references)
    return words, max(_f1(output, reference) for reference in references)


def _f1(output: Sequence[str], reference: Sequence[str]) -> float:
    total = len(output) + len(reference)
    common = (Counter(output) & Counter(reference)).total()
    return 2 * common / total if total else 1.0


def worst_examples(report: EvaluationReport, count: int) -> list[int]:
    """Return the indices of the outputs that overlap least with their references, worst first."""

    def similarity(index: int) -> tuple[float, float]:
        return overlap(report.outputs[index], report.examples[index].references)

    return sorted(range(len(report.outputs)), key=similarity)[:count]


def differing_examples(first: EvaluationReport, second: EvaluationReport) -> list[int]:
    """Return the indices at which the outputs of two runs differ.

    For each index, the overlap with the references is computed for both outputs. The indices with
    the largest difference in overlap come first.
    """

    def negative_difference(index: int) -> tuple[float, float]:
        references = first.examples[index].references
        words, characters = overlap(first.outputs[index], references)
        other_words, other_characters = overlap(second.outputs[index], references)
        return -abs(words - other_words), -abs(characters - other_characters)

    outputs = zip(first.outputs, second.outputs, strict=True)
    differing = [index for index, (ours, theirs) in enumerate(outputs) if ours != theirs]
    return sorted(differing, key=negative_difference)


def evenly_spaced_examples(report: EvaluationReport, count: int) -> list[int]:
    """Return `count` indices spread evenly over the split."""
    total = len(report.outputs)
    return list(range(0, total, max(total // count, 1))[:count])
