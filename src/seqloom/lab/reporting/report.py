"""ClaimReport: verdict, table and charts of a claim, and a comparison with published figures."""

import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, assert_never

import torch

from seqloom import __version__
from seqloom.lab.claim import Claim, PublishedResult, Size
from seqloom.lab.results import Results, deviation
from seqloom.lab.verdict import RULE, State, Verdict
from seqloom.viz.chart import BarChart, Chart, LineChart


@dataclass(frozen=True)
class ComparedFigure:
    """A published value and the value that we measured under the corresponding condition.

    label: name of the published value
    ours:  mean of our value over the seeds
    """

    label: str
    theirs: float
    ours: float


@dataclass(frozen=True)
class PublishedComparison:
    """A published result compared with ours.

    where:   publication and table
    what:    metric and experiment
    figures: the published values, each with our value
    swapped: pairs of labels. The order of the two values in our results is the opposite of their
             published order
    state:   our verdict on the claim. If it is not "confirmed", our order is not meaningful and
             `same_order` is None
    """

    where: str
    what: str
    figures: Sequence[ComparedFigure]
    swapped: Sequence[tuple[str, str]]
    state: State

    @property
    def same_order(self) -> bool | None:
        """True if our results have the same order as the published ones.

        None if our verdict does not confirm the claim. Our order is not meaningful then.
        """
        return not self.swapped if self.state == "confirmed" else None

    @property
    def summary(self) -> str:
        if self.same_order is None:
            return f"The claim is {self.state} here, so the orders are not compared."
        if self.same_order:
            return "The order is the same."
        pairs = ", ".join(f"{first} and {second}" for first, second in self.swapped)
        count = len(self.figures) * (len(self.figures) - 1) // 2
        return f"The order differs in {len(self.swapped)} of {count} pairs: {pairs}."


@dataclass(frozen=True)
class ClaimReport:
    """A claim and the results of its experiment.

    size: size of the models and data of the experiment, for example "tiny"
    """

    claim: Claim[Any]
    size: Size
    results: Results

    @property
    def verdict(self) -> Verdict:
        verdict = self.claim.judge(self.results)
        if self.size == "tiny":
            reason = f"size tiny only shows that the experiment runs; {verdict.reason}"
            return Verdict("undecided", reason)
        if len(self.results.seeds) < self.claim.min_seeds:
            reason = f"this claim needs at least {self.claim.min_seeds} seeds; {verdict.reason}"
            return Verdict("undecided", reason)
        return verdict

    @property
    def charts(self) -> Sequence[Chart]:
        return self.claim.plot(self.results)

    @property
    def table(self) -> list[list[str]]:
        """The cells of the results table. The first row and the first column contain the headings.

        There is one row per condition. If there are more columns than conditions, the table is
        transposed, because long tables are easier to read than wide ones.
        """
        columns = self.claim.columns
        rows = [["", *(column.label for column in columns)]]
        for condition in self.claim.conditions:
            cells = [self._cell(condition, column.name, column.format_spec) for column in columns]
            rows.append([condition, *cells])
        if len(columns) > len(self.claim.conditions):
            return [list(row) for row in zip(*rows, strict=True)]
        return rows

    def _cell(self, condition: str, name: str, format_spec: str) -> str:
        """Format a measured value as mean ± standard deviation over the seeds.

        Returns a dash if the value is not measured under this condition.
        """
        measurements = [each for each in self.results.measurements if each.condition == condition]
        if any(name not in each.numbers for each in measurements):
            return "–"
        spread = deviation(self.results.over_seeds(condition, name))
        mean = format(self.results.mean(condition, name), format_spec)
        return f"{mean} ± {format(spread, format_spec)}" if spread else mean

    @property
    def comparisons(self) -> list[PublishedComparison]:
        """Comparisons with published results.

        A published result is left out if our experiment does not measure its metric.
        """
        state = self.verdict.state
        return [
            compare_with_published(published, self.results, state)
            for published in self.claim.published
            if all(published.metric in each.numbers for each in self.results.measurements)
        ]

    @property
    def devices(self) -> list[str]:
        """The devices on which the measurements were made, such as "cpu", without duplicates.

        For a claim about time, the list contains the machines (processor and GPU) instead. If a
        measurement does not name its machine, the list contains its device.
        """
        return sorted(
            {
                each.machine if self.claim.is_timed and each.machine else each.device
                for each in self.results.measurements
            }
        )

    @property
    def seconds(self) -> float:
        """Total duration of all measurements, in seconds."""
        return sum(each.seconds for each in self.results.measurements)

    def to_json(self) -> dict[str, Any]:
        """The content of report.json."""
        claim = self.claim
        return {
            "claim": claim.name,
            "sentence": claim.sentence,
            "source": claim.source,
            "setup": claim.setup,
            "settings": repr(claim.sizes[self.size]),
            "confirms": claim.confirms,
            "refutes": claim.refutes,
            "rule": RULE,
            "size": self.size,
            "seeds": self.results.seeds,
            "verdict": asdict(self.verdict),
            "table": self.table,
            "charts": [_chart_data(chart) for chart in self.charts],
            "published": [
                {
                    **asdict(comparison),
                    "order": comparison.summary,
                    "same_order": comparison.same_order,
                }
                for comparison in self.comparisons
            ],
            "measurements": [asdict(each) for each in self.results.measurements],
            "versions": {
                "seqloom": __version__,
                "torch": torch.__version__,
                "python": platform.python_version(),
            },
        }


def _chart_data(chart: Chart) -> dict[str, Any]:
    """Return the kind of a chart and its values, without options that are not set."""
    match chart:
        case LineChart():
            kind = "lines"
        case BarChart():
            kind = "bars"
        case _:
            assert_never(chart)
    values = asdict(
        chart,
        dict_factory=lambda pairs: {
            name: value for name, value in pairs if value not in ("", (), None)
        },
    )
    return {"kind": kind, **values}


def compare_with_published(
    published: PublishedResult, results: Results, state: State
) -> PublishedComparison:
    """Compare published values with the means of our values over the seeds.

    state: our verdict on the claim, for example "confirmed"
    """
    figures = [
        ComparedFigure(figure.label, figure.value, results.mean(figure.condition, published.metric))
        for figure in published.figures
    ]
    swapped = [
        (first.label, second.label)
        for first, second in combinations(figures, 2)
        if (first.theirs - second.theirs) * (first.ours - second.ours) < 0
    ]
    what = f"{published.metric}, {published.what}"
    return PublishedComparison(published.where, what, figures, swapped, state)
