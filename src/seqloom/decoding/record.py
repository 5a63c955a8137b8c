"""Record: a whole search on paper. Every candidate of every step, and what became of it.

A record is enough to find the outputs again: `replay` needs neither the model nor the search.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from seqloom.core.errors import DataError
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import normalise
from seqloom.text.vocabulary import END

ROOT = -1
"""The parent of a candidate of the first step."""


class Fate(StrEnum):
    """What becomes of a candidate."""

    KEPT = "kept"
    """It goes on: its own continuations are candidates of the next step."""
    FINISHED = "finished"
    """It ends in END: saved, and not continued."""
    STOPPED = "stopped"
    """It would have gone on, but its source was done: saved, as an output without END."""
    DROPPED = "dropped"


class Reason(StrEnum):
    """Why a candidate was stopped or dropped; the last five are rules."""

    OUTSCORED = "outscored"
    END_OUTSCORED = "END outscored"
    """An END is saved only if it is among the best candidates of its step."""
    NOT_DRAWN = "not drawn"
    ENOUGH = "enough finished"
    LENGTH = "length limit"
    PREFIX = "forced otherwise"
    SPECIAL = "never put out"
    UNKNOWN = "unknown token"
    MIN_LENGTH = "too early to end"
    REPEAT = "would repeat"


@dataclass(frozen=True)
class Candidate:
    """One token after one hypothesis.

    parent:          the candidate of the step before that it continues, by its place there
    log_probability: the model's own, of this token alone
    total:           of all tokens up to this one
    score:           total / length^exponent
    """

    token: int
    parent: int
    log_probability: float
    total: float
    score: float
    fate: Fate
    reason: Reason | None = None

    @property
    def is_leaf(self) -> bool:
        """Does an output end here?"""
        return self.fate in (Fate.FINISHED, Fate.STOPPED)


Place = tuple[int, int]
"""A candidate of a record: its step and its place in that step, both counted from 0."""


@dataclass(frozen=True)
class Record:
    """The search for the outputs of one source.

    kind:            beam, greedy, sample or exhaustive
    width:           hypotheses followed at a time; samples drawn
    n_best:          outputs that were asked for
    length_exponent: scores are log p / length^exponent
    ranked:          are outputs sorted by score? Samples come in the order drawn
    prefix:          how the output had to begin
    steps:           the candidates of each step, the likeliest first where they are ranked
    """

    kind: str
    width: int
    n_best: int
    length_exponent: float
    ranked: bool
    prefix: tuple[int, ...]
    steps: tuple[tuple[Candidate, ...], ...]

    def candidate(self, place: Place) -> Candidate:
        return self.steps[place[0]][place[1]]

    def path(self, place: Place) -> list[Place]:
        """From the first token to this one."""
        step, index = place
        found = []
        while index != ROOT:
            found.append((step, index))
            step, index = step - 1, self.steps[step][index].parent
        return found[::-1]

    def leaves(self) -> Iterator[Place]:
        """Where outputs end, in the order in which a search saves them."""
        for number, step in enumerate(self.steps):
            for fate in (Fate.FINISHED, Fate.STOPPED):
                yield from ((number, i) for i, one in enumerate(step) if one.fate is fate)

    def best(self) -> list[list[Place]]:
        """The paths of the outputs, as the search gives them back."""
        paths = [self.path(leaf) for leaf in self.leaves()]
        if not self.ranked:
            return sorted(paths, key=lambda path: path[0])

        def merit(path: list[Place]) -> tuple[bool, float]:
            total = sum(self.candidate(place).log_probability for place in path)
            finished = self.candidate(path[-1]).token == END
            return finished, normalise(total, len(path), self.length_exponent)

        return sorted(paths, key=merit, reverse=True)[: self.n_best]

    def to_json(self) -> dict[str, Any]:
        """The same in plain Python, for a program to read."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Record":
        """What `to_json` gave, perhaps by way of a file."""
        try:
            steps = tuple(tuple(_candidate(one) for one in step) for step in content["steps"])
            record = cls(**{**content, "prefix": tuple(content["prefix"]), "steps": steps})
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"this is no record of a search ({error}); give what `seqloom search --out "
                "FILE.json` wrote under 'record'"
            ) from error
        return record


def _candidate(content: Mapping[str, Any]) -> Candidate:
    reason = content["reason"]
    changed = {
        "fate": Fate(content["fate"]),
        "reason": None if reason is None else Reason(reason),
    }
    return Candidate(**{**content, **changed})


def replay(record: Record) -> list[Hypothesis]:
    """The outputs of a recorded search, computed from the record alone."""
    return [_hypothesis(record, path) for path in record.best()]


def _hypothesis(record: Record, path: Sequence[Place]) -> Hypothesis:
    tokens = tuple(record.candidate(place).token for place in path)
    finished = tokens[-1] == END
    own = tuple(record.candidate(place).log_probability for place in path)
    return Hypothesis(
        tokens=tokens[:-1] if finished else tokens,
        finished=finished,
        log_probabilities=own,
        score=normalise(sum(own), len(own), record.length_exponent),
        attention=None,
    )
