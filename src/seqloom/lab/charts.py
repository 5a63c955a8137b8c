"""Charts that several claims draw from their results."""

from collections.abc import Mapping, Sequence
from typing import Any

from seqloom.lab.results import Results
from seqloom.viz.chart import BarChart, LineChart, Series


def condition_lines(
    results: Results,
    labels: tuple[str, str],
    conditions: Sequence[str] | Mapping[str, str],
    x: Sequence[float],
    names: Sequence[str],
    **axes: Any,
) -> LineChart:
    """Return a chart with one line per condition.

    labels:     of the x axis and the y axis
    conditions: conditions, or a mapping from each condition to its name in the chart
    x, names:   position and name of each measured value
    axes:       options of LineChart
    """
    titles = conditions if isinstance(conditions, Mapping) else {each: each for each in conditions}
    series = [Series(title, x, results.curve(each, names)) for each, title in titles.items()]
    return LineChart(*labels, series, **axes)


def line_over_conditions(
    results: Results,
    labels: tuple[str, str],
    series: str,
    conditions: Mapping[str, float],
    name: str,
    **axes: Any,
) -> LineChart:
    """Return a chart with one line, whose points are the conditions.

    conditions: position of each condition on the x axis
    name:       name of the measured value
    """
    values = [results.over_seeds(condition, name) for condition in conditions]
    return LineChart(*labels, [Series(series, list(conditions.values()), values)], **axes)


def condition_bars(results: Results, label: str, conditions: Sequence[str], name: str) -> BarChart:
    """Return a chart with one bar per condition."""
    values = [results.over_seeds(condition, name) for condition in conditions]
    return BarChart(label, conditions, values)
