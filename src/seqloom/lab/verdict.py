"""The rule that decides whether a claim holds.

A claim consists of statements (`Effect`). Each statement requires a measured value to be above or
below a bound. The test uses margins, one per seed. A margin is the distance of the measured value
from the bound, and is positive if the value is on the required side.

    confirmed   all margins are positive, and their mean exceeds twice its standard error
    refuted     all margins are negative, and their mean is below minus twice its standard error
    undecided   otherwise, and always with fewer than three seeds (some claims need more)

A claim is confirmed if all its statements are confirmed, refuted if at least one is refuted, and
undecided otherwise. With three seeds, a statement about pure noise is confirmed in about one
of eleven experiments, and refuted equally often. With more seeds this happens less often.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

State = Literal["confirmed", "refuted", "undecided"]
MIN_SEEDS = 3
RULE = (
    "Each claim is measured with at least three seeds. A statement holds if its number is on the "
    "required side of the bound with every seed, and if the mean is more than two standard errors "
    "away from the bound. It fails if the same is true for the other side. A claim is confirmed if "
    "all its statements hold, refuted if one fails, and undecided otherwise. With three seeds, a "
    "number that varies randomly around the bound passes about one time in eleven."
)


@dataclass(frozen=True)
class Verdict:
    """Whether a claim is confirmed, refuted or undecided, and why.

    reason: one reason for each statement of the claim, separated by "; "
    """

    state: State
    reason: str


@dataclass(frozen=True)
class Effect:
    """One statement of a claim: a measured value must be above or below a bound.

    statement:   text before the value, for example "at length 30, attention is more accurate by"
    values:      the measured value of each seed
    above:       lower bound. Default: 0, unless `below` is given.
    below:       upper bound
    format_spec: format of the values, as in format()
    unit:        text after the values
    """

    statement: str
    values: Sequence[float]
    above: float | None = None
    below: float | None = None
    format_spec: str = ".3g"
    unit: str = ""

    @property
    def margins(self) -> list[float]:
        """The distance of each value from the bound.

        It is positive if the value is on the required side of the bound, else negative.
        """
        if self.below is not None:
            return [self.below - value for value in self.values]
        return [value - (self.above or 0.0) for value in self.values]

    @property
    def state(self) -> State:
        margins = self.margins
        if len(margins) < MIN_SEEDS:
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
        """One line of text: the outcome, the statement, the measured values and the requirement."""
        outcome = {"confirmed": "yes", "refuted": "no", "undecided": "not clear"}[self.state]
        mean, lowest, highest = (
            format(value, self.format_spec)
            for value in (statistics.fmean(self.values), min(self.values), max(self.values))
        )
        numbers = mean if lowest == highest else f"{mean} ({lowest} to {highest})"
        unit = f" {self.unit}" if self.unit else ""
        seeds = f" and {MIN_SEEDS} seeds" if len(self.values) < MIN_SEEDS else ""
        return f"{outcome}: {self.statement} {numbers}{unit}, required: {self._requirement}{seeds}"

    @property
    def _requirement(self) -> str:
        if self.below is not None:
            return f"less than {format(self.below, self.format_spec)}"
        return f"more than {format(self.above or 0.0, self.format_spec)}"


def conclude(*effects: Effect) -> Verdict:
    """Return the verdict on a claim. Each `Effect` is one statement of the claim."""
    states = {effect.state for effect in effects}
    state: State = "undecided"
    if states == {"confirmed"}:
        state = "confirmed"
    elif "refuted" in states:
        state = "refuted"
    return Verdict(state, "; ".join(effect.reason for effect in effects))
