"""What came of a claim: verdict, table, charts, and our figures beside published ones."""

import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, assert_never

import torch

from seqloom import __version__
from seqloom.lab.claim import Claim, Published, Size
from seqloom.lab.results import Results, deviation
from seqloom.lab.verdict import RULE, Verdict
from seqloom.viz.chart import BarChart, Chart, LineChart


@dataclass(frozen=True)
class Beside:
    """A published figure and ours."""

    label: str
    theirs: float
    ours: float


@dataclass(frozen=True)
class Comparison:
    """Published figures with ours beside them, and the pairs that stand in another order."""

    where: str
    what: str
    figures: Sequence[Beside]
    swapped: Sequence[tuple[str, str]]

    @property
    def words(self) -> str:
        if not self.swapped:
            return "The order is the same."
        pairs = ", ".join(f"{one} and {other}" for one, other in self.swapped)
        count = len(self.figures) * (len(self.figures) - 1) // 2
        return f"The order differs in {len(self.swapped)} of {count} pairs: {pairs}."


@dataclass(frozen=True)
class Report:
    """A claim and all that was found out about it."""

    claim: Claim[Any]
    size: Size
    results: Results

    @property
    def verdict(self) -> Verdict:
        found = self.claim.judge(self.results)
        if self.size == "tiny":
            return Verdict("undecided", f"tiny only shows that the experiment runs; {found.reason}")
        return found

    @property
    def charts(self) -> Sequence[Chart]:
        return self.claim.plot(self.results)

    @property
    def table(self) -> list[list[str]]:
        """Its first row and its first column are heads. Conditions go down, unless there are more
        columns than conditions: tables are better long than wide."""
        columns = self.claim.columns
        rows = [["", *(column.label for column in columns)]]
        for condition in self.claim.conditions:
            cells = [self._cell(condition, column.name, column.form) for column in columns]
            rows.append([condition, *cells])
        if len(columns) > len(self.claim.conditions):
            return [list(row) for row in zip(*rows, strict=True)]
        return rows

    def _cell(self, condition: str, name: str, form: str) -> str:
        """Mean ± standard deviation; a dash where the condition has no such number."""
        mine = [one for one in self.results.measurements if one.condition == condition]
        if any(name not in one.numbers for one in mine):
            return "–"
        spread = deviation(self.results.over_seeds(condition, name))
        mean = format(self.results.mean(condition, name), form)
        return f"{mean} ± {format(spread, form)}" if spread else mean

    @property
    def comparisons(self) -> list[Comparison]:
        return [compare(published, self.results) for published in self.claim.published]

    @property
    def devices(self) -> list[str]:
        return sorted({one.device for one in self.results.measurements})

    @property
    def seconds(self) -> float:
        """Of all measurements together."""
        return sum(one.seconds for one in self.results.measurements)

    def to_json(self) -> dict[str, Any]:
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
            "charts": [{"kind": _kind(one), **asdict(one)} for one in self.charts],
            "published": [
                {**asdict(one), "order": one.words, "same_order": not one.swapped}
                for one in self.comparisons
            ],
            "measurements": [asdict(one) for one in self.results.measurements],
            "versions": {
                "seqloom": __version__,
                "torch": torch.__version__,
                "python": platform.python_version(),
            },
        }


def _kind(chart: Chart) -> str:
    match chart:
        case LineChart():
            return "lines"
        case BarChart():
            return "bars"
        case _:
            assert_never(chart)


def compare(published: Published, results: Results) -> Comparison:
    """Two figures are swapped if one is the higher of the two here and the lower one there."""
    figures = [
        Beside(one.label, one.value, results.mean(one.condition, one.name))
        for one in published.figures
    ]
    swapped = [
        (one.label, other.label)
        for one, other in combinations(figures, 2)
        if (one.theirs - other.theirs) * (one.ours - other.ours) < 0
    ]
    return Comparison(published.where, published.what, figures, swapped)
