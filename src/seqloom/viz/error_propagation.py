"""Draws the effect of the first wrong token of an output on the rest of the reference."""

from seqloom.analysis.error_propagation import ErrorPropagation
from seqloom.viz.chart import LineChart, Series

MIN_SENTENCES = 10
"""A point of the chart is a mean over sentences. Points with fewer sentences are left out."""


def error_chart(result: ErrorPropagation) -> LineChart:
    """Return a chart of log-probabilities by the distance from the first wrong token.

    The three curves differ in the prefix of each token: the reference, the reference with one wrong
    token, and the output of the model. Before the wrong token the prefixes are equal, so only the
    first curve contains these positions.
    """
    shown = [point for point in result.curve if point.sentences >= MIN_SENTENCES]
    after_error = [point for point in shown if point.distance >= 0]
    curves = {
        "after the reference prefix": [(p.distance, p.after_reference) for p in shown],
        "after one wrong token": [(p.distance, p.after_error) for p in after_error],
        "after the model's own output": [
            (p.distance, p.after_output)
            for p in result.curve
            if p.distance >= 0
            and p.after_output is not None
            and p.output_sentences >= MIN_SENTENCES
        ],
    }
    differing, total = len(result.with_error), len(result.sentences)
    return LineChart(
        title=f"{differing:,} of {total:,} outputs differ from their reference",
        x_label=f"tokens after the first error (means of {MIN_SENTENCES} or more sentences)",
        y_label="mean log p of the reference token",
        series=[
            Series(name, [x for x, _ in points], [[y] for _, y in points])
            for name, points in curves.items()
        ],
        zero=False,
        vertical_line=0,
    )
