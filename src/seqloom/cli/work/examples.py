"""Examples that are worth a look: which ones, and how they are written."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from seqloom.runs.evaluation.report import EvaluationReport


def overlap(output: str, references: Sequence[str]) -> tuple[float, float]:
    """How much of the nearest reference is in the output: F1 of words, then of characters.

    F1 = 2 |o ∩ r| / (|o| + |r|), of multisets. Characters decide where words leave a draw.
    """
    words = max(_f1(output.split(), reference.split()) for reference in references)
    return words, max(_f1(output, reference) for reference in references)


def _f1(output: Sequence[str], reference: Sequence[str]) -> float:
    total = len(output) + len(reference)
    common = (Counter(output) & Counter(reference)).total()
    return 2 * common / total if total else 1.0


def worst(report: EvaluationReport, count: int) -> list[int]:
    """The places whose outputs are least like their references, the worst first."""

    def likeness(place: int) -> tuple[float, float]:
        return overlap(report.outputs[place], report.examples[place].references)

    return sorted(range(len(report.outputs)), key=likeness)[:count]


def differing(one: EvaluationReport, other: EvaluationReport) -> list[int]:
    """The places where two runs put out different texts, the largest gain or loss first."""

    def distance(place: int) -> tuple[float, float]:
        references = one.examples[place].references
        ours = overlap(one.outputs[place], references)
        theirs = overlap(other.outputs[place], references)
        return -abs(ours[0] - theirs[0]), -abs(ours[1] - theirs[1])

    pairs = zip(one.outputs, other.outputs, strict=True)
    places = [place for place, (ours, theirs) in enumerate(pairs) if ours != theirs]
    return sorted(places, key=distance)


def spread(report: EvaluationReport, count: int) -> list[int]:
    """Places spread evenly over the split."""
    total = len(report.outputs)
    return list(range(0, total, max(total // count, 1))[:count])


def show_examples(
    console: Console, reports: Sequence[EvaluationReport], places: Sequence[int]
) -> None:
    """Source, reference and the output of every report, under each other."""
    names = ["output"] if len(reports) == 1 else [report.run for report in reports]
    column = max(len(name) for name in (*names, "reference")) + 2
    for place in places:
        example = reports[0].examples[place]
        texts = [("source", example.source), ("reference", example.target)]
        outputs = [report.outputs[place] for report in reports]
        for name, text in (*texts, *zip(names, outputs, strict=True)):
            console.print(Text.assemble((f"{name:<{column}}", "dim"), text), soft_wrap=True)
        console.print()
