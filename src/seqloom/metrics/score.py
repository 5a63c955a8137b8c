"""Score: one number, and all that is needed to compare it with another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seqloom.core.errors import DataError

References = Sequence[Sequence[str]]
"""For each sentence its references: one or more, not always as many."""

SHOWN = 5


@dataclass(frozen=True)
class Score:
    """The value of a metric.

    signature: how it was computed, down to the version; None where there is only one way
    """

    name: str
    value: float
    signature: str | None
    higher_is_better: bool

    @property
    def key(self) -> str:
        """Its name in recipes and journals: "exact match" is "exact-match"."""
        return self.name.lower().replace(" ", "-")


Metric = Callable[[Sequence[str], References], Score]
"""Hypotheses and their references -> how good they are together."""


def check_references(hypotheses: Sequence[str], references: References) -> None:
    """There must be hypotheses, as many lists of references, and a reference in each."""
    problems = []
    if not hypotheses:
        problems.append("there are no hypotheses")
    if len(hypotheses) != len(references):
        problems.append(
            f"there are {len(hypotheses):,} hypotheses and references for {len(references):,} "
            "sentences; give one hypothesis for each sentence"
        )
    bare = [str(place) for place, several in enumerate(references, start=1) if not several]
    if bare:
        more = f" and {len(bare) - SHOWN:,} more" if len(bare) > SHOWN else ""
        problems.append(f"no reference for sentence {', '.join(bare[:SHOWN])}{more}")
    if problems:
        raise DataError("cannot be scored: " + "; ".join(problems))
