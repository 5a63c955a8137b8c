"""Score: the value of a metric, the name of the metric, and how the value was computed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seqloom.core.errors import DataError

References = Sequence[Sequence[str]]
"""For each sentence, one or more references. Their number may differ between sentences."""

MAX_LISTED = 5
"""Maximum number of sentences that an error message lists."""


@dataclass(frozen=True)
class Score:
    """The value of a metric.

    signature: describes how the value was computed (options and versions); None if there is only
               one way to compute it
    """

    name: str
    value: float
    signature: str | None
    higher_is_better: bool

    @property
    def key(self) -> str:
        """The name of the metric in recipes and event logs, such as "exact-match"."""
        # The name of a metric outside seqloom is "module:name", with the case of its module.
        return self.name if ":" in self.name else self.name.lower().replace(" ", "-")


Metric = Callable[[Sequence[str], References], Score]
"""Hypotheses and their references -> the score of the corpus."""


def check_references(hypotheses: Sequence[str], references: References) -> None:
    """Raise DataError if there are no hypotheses, or if one of them has no reference."""
    problems = []
    if not hypotheses:
        problems.append("there are no hypotheses")
    if len(hypotheses) != len(references):
        problems.append(
            f"there are {len(hypotheses):,} hypotheses and references for {len(references):,} "
            "sentences; give one hypothesis for each sentence"
        )
    missing = [str(number) for number, texts in enumerate(references, start=1) if not texts]
    if missing:
        rest = f" and {len(missing) - MAX_LISTED:,} more" if len(missing) > MAX_LISTED else ""
        problems.append(f"no reference for sentence {', '.join(missing[:MAX_LISTED])}{rest}")
    if problems:
        raise DataError("the outputs cannot be scored: " + "; ".join(problems))
