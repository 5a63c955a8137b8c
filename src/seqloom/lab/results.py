"""The numbers that an experiment measures, for all conditions and seeds."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Numbers = Mapping[str, float]
"""Values measured under one condition with one seed, by name."""


@dataclass(frozen=True)
class Measurement:
    """The values measured under one condition with one seed.

    seconds: duration of the measurement. It includes training, unless the model was already trained
             for another condition.
    device:  for example "cpu" or "cuda"
    machine: processor and GPU. Empty if the report was written before this field existed.
    """

    condition: str
    seed: int
    numbers: Numbers
    seconds: float
    device: str
    machine: str = ""


@dataclass(frozen=True)
class Results:
    """All measurements of a claim. Every condition is measured with the same seeds."""

    measurements: Sequence[Measurement]

    @property
    def seeds(self) -> list[int]:
        return sorted({each.seed for each in self.measurements})

    def over_seeds(self, condition: str, name: str) -> list[float]:
        """Return the value `name` measured under a condition, for each seed in ascending order."""
        by_seed = {
            each.seed: each.numbers[name]
            for each in self.measurements
            if each.condition == condition
        }
        return [by_seed[seed] for seed in self.seeds]

    def mean(self, condition: str, name: str) -> float:
        return statistics.fmean(self.over_seeds(condition, name))

    def difference(self, name: str, higher: str, lower: str) -> list[float]:
        """Return the value `name` of condition `higher` minus the same value of condition `lower`.

        Returns one difference per seed.
        """
        return self.between((higher, name), (lower, name))

    def between(self, higher: tuple[str, str], lower: tuple[str, str]) -> list[float]:
        """Return the difference between two measured values, for each seed.

        higher: (condition, name) of the value from which the other is subtracted
        lower:  (condition, name) of the value that is subtracted
        """
        return minus(self.over_seeds(*higher), self.over_seeds(*lower))

    def ratio(self, numerator: tuple[str, str], denominator: tuple[str, str]) -> list[float]:
        """Return the ratio of two measured values, each a (condition, name), for each seed."""
        pairs = zip(self.over_seeds(*numerator), self.over_seeds(*denominator), strict=True)
        return [first / second for first, second in pairs]

    def curve(self, condition: str, names: Sequence[str]) -> list[list[float]]:
        """Return several values measured under one condition, as the points of a line in a chart.

        There is one point for each name. A point is a list of numbers, one for each seed.

        names: names of the measured values, for example "accuracy at 4" and "accuracy at 8"
        """
        return [self.over_seeds(condition, name) for name in names]


def minus(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Return the differences of the values of each seed."""
    return [one - other for one, other in zip(first, second, strict=True)]


def deviation(values: Sequence[float]) -> float:
    """Return the standard deviation; 0 for a single value."""
    return statistics.stdev(values) if len(values) > 1 else 0.0
