"""Measurements of a claim, over conditions and seeds."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Numbers = Mapping[str, float]
"""The measured numbers of one condition with one seed, by name."""


@dataclass(frozen=True)
class Measurement:
    """The numbers of one condition with one seed.

    seconds: duration. Includes the training unless another condition trained the same model before.
    device:  for example "cpu" or "cuda"
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
        return sorted({each.seed for each in self.measurements})

    def over_seeds(self, condition: str, name: str) -> list[float]:
        """One number per seed, in the order of the seeds."""
        by_seed = {
            each.seed: each.numbers[name]
            for each in self.measurements
            if each.condition == condition
        }
        return [by_seed[seed] for seed in self.seeds]

    def mean(self, condition: str, name: str) -> float:
        return statistics.fmean(self.over_seeds(condition, name))

    def difference(self, name: str, higher: str, lower: str) -> list[float]:
        """The number of condition `higher` minus that of condition `lower`, per seed."""
        return self.between((higher, name), (lower, name))

    def between(self, higher: tuple[str, str], lower: tuple[str, str]) -> list[float]:
        """One number (condition, name) minus another, per seed."""
        pairs = zip(self.over_seeds(*higher), self.over_seeds(*lower), strict=True)
        return [first - second for first, second in pairs]

    def curve(self, condition: str, names: Sequence[str]) -> list[list[float]]:
        """The numbers over the seeds for each name: the points of a line in a chart."""
        return [self.over_seeds(condition, name) for name in names]


def deviation(values: Sequence[float]) -> float:
    """The standard deviation; 0 for a single value."""
    return statistics.stdev(values) if len(values) > 1 else 0.0
