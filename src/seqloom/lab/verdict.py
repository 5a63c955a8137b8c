"""When a claim holds: one rule for all of them.

A claim is taken apart into effects. An effect is one number a seed, above zero where the claim is
right: how much better one condition is than the other, or how far a number lies beyond a bound.

    confirmed   it is above zero with every seed, and its mean exceeds twice its standard error
    refuted     it is below zero with every seed, and its mean is below minus twice that error
    undecided   anything else, and whatever was measured with fewer than three seeds

A claim is confirmed if all its effects are, refuted if one of them is, and undecided otherwise.
With three seeds, an effect that is nothing but chance is confirmed about once in eleven times and
refuted as often; more seeds make it rarer.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

State = Literal["confirmed", "refuted", "undecided"]
LEAST_SEEDS = 3
RULE = (
    "A statement counts if its number lies on the same side of the bound with every seed (three or "
    "more) and its mean is more than twice its standard error away from it. A claim is confirmed if "
    "all its statements count for it, refuted if one counts against it, and undecided otherwise. "
    "With three seeds, pure chance passes for a statement about once in eleven times."
)


@dataclass(frozen=True)
class Verdict:
    """What came out, and why, in words."""

    state: State
    reason: str


@dataclass(frozen=True)
class Effect:
    """Something the claim says, as one number a seed that should be above (or below) a bound.

    says: the statement, as "attention is more exact at length 30, by"
    form: how its numbers are written, as in format()
    unit: what is written behind them
    """

    says: str
    values: Sequence[float]
    above: float | None = None
    below: float | None = None
    form: str = ".3g"
    unit: str = ""

    @property
    def margins(self) -> list[float]:
        """How far each number is on the right side; above 0 where nothing else is asked for."""
        if self.below is not None:
            return [self.below - value for value in self.values]
        return [value - (self.above or 0.0) for value in self.values]

    @property
    def state(self) -> State:
        margins = self.margins
        if len(margins) < LEAST_SEEDS:
            return "undecided"
        mean = statistics.fmean(margins)
        error = statistics.stdev(margins) / math.sqrt(len(margins))
        if min(margins) > 0 and mean > 2 * error:
            return "confirmed"
        if max(margins) < 0 and mean < -2 * error:
            return "refuted"
        return "undecided"

    @property
    def reason(self) -> str:
        """The statement, its numbers, and whether they are enough."""
        words = {"confirmed": "yes", "refuted": "no", "undecided": "not clear"}[self.state]
        mean, low, high = (
            format(value, self.form)
            for value in (statistics.fmean(self.values), min(self.values), max(self.values))
        )
        span = mean if low == high else f"{mean} ({low} to {high})"
        unit = f" {self.unit}" if self.unit else ""
        few = f" and {LEAST_SEEDS} seeds" if len(self.values) < LEAST_SEEDS else ""
        return f"{words}: {self.says} {span}{unit}, {self._wanted} wanted{few}"

    @property
    def _wanted(self) -> str:
        if self.below is not None:
            return f"less than {format(self.below, self.form)}"
        return f"more than {format(self.above or 0.0, self.form)}"


def conclude(*effects: Effect) -> Verdict:
    """The verdict on a claim that says all of this."""
    states = {effect.state for effect in effects}
    state: State = "undecided"
    if states == {"confirmed"}:
        state = "confirmed"
    elif "refuted" in states:
        state = "refuted"
    return Verdict(state, "; ".join(effect.reason for effect in effects))
