"""What was measured, over conditions and seeds."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Numbers = Mapping[str, float]
"""What one condition gave with one seed, by the name of what was measured."""


@dataclass(frozen=True)
class Measurement:
    """One condition with one seed.

    seconds: how long it took, training included unless another condition had trained the model
    device:  what computed
    """

    condition: str
    seed: int
    numbers: Numbers
    seconds: float
    device: str


@dataclass(frozen=True)
class Results:
    """All measurements of a claim: every condition with the same seeds."""

    measurements: Sequence[Measurement]

    @property
    def seeds(self) -> list[int]:
        return sorted({one.seed for one in self.measurements})

    def over_seeds(self, condition: str, name: str) -> list[float]:
        """One number a seed, the seeds in order."""
        found = {
            one.seed: one.numbers[name] for one in self.measurements if one.condition == condition
        }
        return [found[seed] for seed in self.seeds]

    def mean(self, condition: str, name: str) -> float:
        return statistics.fmean(self.over_seeds(condition, name))

    def difference(self, name: str, higher: str, lower: str) -> list[float]:
        """By how much one condition is above another, seed by seed."""
        return self.between((higher, name), (lower, name))

    def between(self, higher: tuple[str, str], lower: tuple[str, str]) -> list[float]:
        """By how much one number (condition, name) is above another, seed by seed."""
        pairs = zip(self.over_seeds(*higher), self.over_seeds(*lower), strict=True)
        return [one - other for one, other in pairs]

    def curve(self, condition: str, names: Sequence[str]) -> list[list[float]]:
        """For each name the numbers over the seeds: what a line in a chart is made of."""
        return [self.over_seeds(condition, name) for name in names]


def deviation(values: Sequence[float]) -> float:
    """The standard deviation over seeds; 0 for a single one."""
    return statistics.stdev(values) if len(values) > 1 else 0.0
