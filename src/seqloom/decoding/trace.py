"""SearchTrace: every candidate of every step of a search, and what the search did with it.

A trace contains the outputs: `replay` computes them again without the model and without the search.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from seqloom.core.errors import DataError
from seqloom.decoding.hypothesis import Hypothesis, normalise_by_length
from seqloom.text.vocabulary import END

NO_PARENT = -1
"""`TracedCandidate.parent` in the first step."""


class Fate(StrEnum):
    """What the search did with a candidate."""

    KEPT = "kept"
    """The search continues it: its continuations are candidates of the next step."""
    FINISHED = "finished"
    """It ends in END: the search saves it and does not continue it."""
    STOPPED = "stopped"
    """The search stopped for this source and saved it as an output without END."""
    DROPPED = "dropped"


class Reason(StrEnum):
    """Why the search stopped or dropped a candidate. The last five are rules (`Rules`)."""

    OUTSCORED = "outscored"
    END_OUTSCORED = "END outscored"
    """The search saves an END only if it is among the best candidates of its step."""
    NOT_DRAWN = "not drawn"
    ENOUGH = "enough finished"
    LENGTH = "length limit"
    PREFIX = "forced otherwise"
    SPECIAL = "special token"
    UNKNOWN = "unknown token"
    MIN_LENGTH = "too early to end"
    REPEAT = "would repeat"


_OLD_REASONS = {"never put out": Reason.SPECIAL}
_OLD_FIELDS = {"length_penalty": "length_penalty"}


@dataclass(frozen=True)
class TracedCandidate:
    """One token as the continuation of one hypothesis.

    parent:          index, in the previous step, of the candidate that this one continues
    log_probability: log p of this token under the model
    total:           log p of all tokens up to this one
    score:           total / length^length_penalty
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
        """True if an output ends here."""
        return self.fate in (Fate.FINISHED, Fate.STOPPED)


CandidateIndex = tuple[int, int]
"""A candidate of a trace: its step, and its index in that step, both counted from 0."""


@dataclass(frozen=True)
class SearchTrace:
    """The search for the outputs of one source.

    kind:           beam, greedy, sample or exhaustive
    width:          number of hypotheses in the beam, or of samples
    n_best:         number of requested outputs
    length_penalty: scores are log p / length^length_penalty
    ranked:         True if outputs are sorted by score, False if they are in the order of sampling
    prefix:         tokens that the output had to start with
    steps:          candidates of each step, most probable first if ranked
    """

    kind: str
    width: int
    n_best: int
    length_penalty: float
    ranked: bool
    prefix: tuple[int, ...]
    steps: tuple[tuple[TracedCandidate, ...], ...]

    def candidate(self, index: CandidateIndex) -> TracedCandidate:
        return self.steps[index[0]][index[1]]

    def path(self, index: CandidateIndex) -> list[CandidateIndex]:
        """The candidates from the first token to this one."""
        step, position = index
        path = []
        while position != NO_PARENT:
            path.append((step, position))
            step, position = step - 1, self.steps[step][position].parent
        return path[::-1]

    def leaves(self) -> Iterator[CandidateIndex]:
        """The last candidates of all outputs, in the order in which the search saved them."""
        for step, candidates in enumerate(self.steps):
            for fate in (Fate.FINISHED, Fate.STOPPED):
                for position, candidate in enumerate(candidates):
                    if candidate.fate is fate:
                        yield step, position

    def best(self) -> list[list[CandidateIndex]]:
        """The paths of the outputs, in the order in which the search returned them."""
        paths = [self.path(leaf) for leaf in self.leaves()]
        if not self.ranked:
            return sorted(paths, key=lambda path: path[0])

        def rank(path: list[CandidateIndex]) -> tuple[bool, float]:
            total = sum(self.candidate(index).log_probability for index in path)
            finished = self.candidate(path[-1]).token == END
            return finished, normalise_by_length(total, len(path), self.length_penalty)

        return sorted(paths, key=rank, reverse=True)[: self.n_best]

    def to_json(self) -> dict[str, Any]:
        """The trace as plain Python values that `json.dump` accepts."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "SearchTrace":
        """The inverse of `to_json`. Raises DataError if `content` is not a trace."""
        try:
            fields = {_OLD_FIELDS.get(name, name): value for name, value in content.items()}
            fields["prefix"] = tuple(fields["prefix"])
            fields["steps"] = tuple(
                tuple(_candidate_from_json(candidate) for candidate in step)
                for step in fields["steps"]
            )
            return cls(**fields)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"this is not a search trace ({error}); pass the value that `seqloom search --out "
                "FILE.json` wrote under 'record'"
            ) from error


def _candidate_from_json(content: Mapping[str, Any]) -> TracedCandidate:
    reason = content["reason"]
    enums = {
        "fate": Fate(content["fate"]),
        "reason": None if reason is None else _OLD_REASONS.get(reason) or Reason(reason),
    }
    return TracedCandidate(**{**content, **enums})


def replay(trace: SearchTrace) -> list[Hypothesis]:
    """The outputs of a traced search, computed from the trace alone."""
    return [_hypothesis(trace, path) for path in trace.best()]


def _hypothesis(trace: SearchTrace, path: Sequence[CandidateIndex]) -> Hypothesis:
    tokens = tuple(trace.candidate(index).token for index in path)
    finished = tokens[-1] == END
    log_probabilities = tuple(trace.candidate(index).log_probability for index in path)
    return Hypothesis(
        tokens=tokens[:-1] if finished else tokens,
        finished=finished,
        log_probabilities=log_probabilities,
        score=normalise_by_length(sum(log_probabilities), len(path), trace.length_penalty),
        attention=None,
    )
