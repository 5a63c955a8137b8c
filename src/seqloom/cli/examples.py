"""Examples of an evaluation report: which ones to print, and how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from seqloom.runs.evaluation.report import EvaluationReport


def overlap(output: str, references: Sequence[str]) -> tuple[float, float]:
    """F1 of the output's words and of its characters, each with the most similar reference.

    F1 = 2 |o ∩ r| / (|o| + |r|), of multisets. The character F1 breaks ties of the word F1.
    """
    words = max(_f1(output.split(), reference.split()) for reference in references)
    return words, max(_f1(output, reference) for reference in references)


def _f1(output: Sequence[str], reference: Sequence[str]) -> float:
    total = len(output) + len(reference)
    common = (Counter(output) & Counter(reference)).total()
    return 2 * common / total if total else 1.0


def worst_examples(report: EvaluationReport, count: int) -> list[int]:
    """The indices of the outputs with the lowest overlap with their references, lowest first."""

    def similarity(index: int) -> tuple[float, float]:
        return overlap(report.outputs[index], report.examples[index].references)

    return sorted(range(len(report.outputs)), key=similarity)[:count]


def differing_examples(first: EvaluationReport, second: EvaluationReport) -> list[int]:
    """The indices where two runs have different outputs, largest difference in overlap first."""

    def negative_difference(index: int) -> tuple[float, float]:
        references = first.examples[index].references
        words, characters = overlap(first.outputs[index], references)
        other_words, other_characters = overlap(second.outputs[index], references)
        return -abs(words - other_words), -abs(characters - other_characters)

    outputs = zip(first.outputs, second.outputs, strict=True)
    differing = [index for index, (ours, theirs) in enumerate(outputs) if ours != theirs]
    return sorted(differing, key=negative_difference)


def evenly_spaced_examples(report: EvaluationReport, count: int) -> list[int]:
    """`count` indices spread evenly over the split."""
    total = len(report.outputs)
    return list(range(0, total, max(total // count, 1))[:count])


def print_examples(
    console: Console, reports: Sequence[EvaluationReport], indices: Sequence[int]
) -> None:
    """Print source, reference, and the output of every report for each index."""
    names = ["output"] if len(reports) == 1 else [report.run for report in reports]
    width = max(len(name) for name in (*names, "reference")) + 2
    for index in indices:
        example = reports[0].examples[index]
        rows = [("source", example.source), ("reference", example.target)]
        rows += [(name, report.outputs[index]) for name, report in zip(names, reports, strict=True)]
        for name, text in rows:
            console.print(Text.assemble((f"{name:<{width}}", "dim"), text), soft_wrap=True)
        console.print()
