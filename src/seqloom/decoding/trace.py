"""SearchTrace: the candidates of every step of a search, and what the search did with each.

`replay` computes the outputs from a trace alone, without the model and without a new search.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from seqloom.core.errors import DataError
from seqloom.decoding.hypothesis import Hypothesis, LengthNormalisation
from seqloom.text.vocabulary import END

NO_PARENT = -1
"""`TracedCandidate.parent` of the candidates of the first step."""


class Fate(StrEnum):
    """What the search did with a candidate."""

    KEPT = "kept"
    """The search extends the candidate in the next step."""
    FINISHED = "finished"
    """The candidate ends in END, and the search saved it as an output."""
    STOPPED = "stopped"
    """The candidate does not end in END. The search saved it as an output when the search stopped
    for this source."""
    DROPPED = "dropped"
    """The search neither extended nor saved the candidate."""


class Reason(StrEnum):
    """Why the search dropped a candidate, or why it saved the candidate as an output without END.

    PREFIX, SPECIAL, UNKNOWN, MIN_LENGTH, REPEAT and EXTENSION mean that a rule (`Rules`) forbids
    the last token of the candidate.
    """

    OUTSCORED = "not in the top k"
    END_OUTSCORED = "END not in the top k"
    """The candidate ends in END, but is not among the best candidates of its step."""
    NOT_DRAWN = "not sampled"
    ENOUGH = "enough outputs"
    LENGTH = "length limit"
    PREFIX = "not the forced token"
    SPECIAL = "special token"
    UNKNOWN = "unknown token"
    MIN_LENGTH = "below minimum length"
    REPEAT = "repeats an n-gram"
    EXTENSION = "forbidden by decoding.rules"


@dataclass(frozen=True)
class TracedCandidate:
    """A candidate: a hypothesis of the previous step, extended by one token.

    parent:          index, in the previous step, of the candidate that this one extends
    log_probability: log p of this token under the model
    total:           sum of log p over all tokens up to this one
    score:           total / length^length_penalty
    reason:          why the search dropped the candidate, or saved it as an output without END.
                     None if the search extended the candidate, or saved it with END
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
        """True if an output ends with this candidate."""
        return self.fate in (Fate.FINISHED, Fate.STOPPED)


CandidateIndex = tuple[int, int]
"""Identifies a candidate of a trace: its step and its index in that step, both from 0."""


@dataclass(frozen=True)
class SearchTrace:
    """The recorded search for the outputs of one source.

    kind:              beam, greedy, sample or exhaustive
    width:             beam width or number of samples; 1 for greedy and exhaustive search
    n_best:            requested maximum number of outputs
    length_penalty:    exponent in the score of an output: log p / length^length_penalty
    ranked:            True if outputs are sorted by score; False for greedy search and sampling
    prefix:            forced tokens at the start of every output
    steps:             candidates of each step; if `ranked`, those with the highest total come first
    length_counts_end: True if END counts in the length
    complete_length:   Outputs with END rank before outputs without END. An output of this length
                       ranks like an output with END, even if it has none. None: no such exception
    """

    kind: str
    width: int
    n_best: int
    length_penalty: float
    ranked: bool
    prefix: tuple[int, ...]
    steps: tuple[tuple[TracedCandidate, ...], ...]
    length_counts_end: bool = False
    complete_length: int | None = None

    @property
    def normalisation(self) -> LengthNormalisation:
        return LengthNormalisation(self.length_penalty, self.length_counts_end)

    def candidate(self, index: CandidateIndex) -> TracedCandidate:
        return self.steps[index[0]][index[1]]

    def path(self, index: CandidateIndex) -> list[CandidateIndex]:
        """Return the indices of the candidates that lead to `index`, from the first step on."""
        step, position = index
        path = []
        while position != NO_PARENT:
            path.append((step, position))
            step, position = step - 1, self.steps[step][position].parent
        return path[::-1]

    def leaves(self) -> Iterator[CandidateIndex]:
        """Yield the index of the last candidate of each output.

        The outputs are in the order in which the search saved them.
        """
        for step, candidates in enumerate(self.steps):
            for fate in (Fate.FINISHED, Fate.STOPPED):
                for position, candidate in enumerate(candidates):
                    if candidate.fate is fate:
                        yield step, position

    def best(self) -> list[list[CandidateIndex]]:
        """Return, for each output, the indices of its candidates from the first step to the last.

        The outputs are in the order in which the search returns them.
        """
        paths = [self.path(leaf) for leaf in self.leaves()]
        if not self.ranked:
            return sorted(paths, key=lambda path: path[0])

        def rank(path: list[CandidateIndex]) -> tuple[bool, float]:
            total = sum(self.candidate(index).log_probability for index in path)
            finished = self.candidate(path[-1]).token == END
            score = self.normalisation.score(total, len(path), finished)
            return finished or len(path) == self.complete_length, score

        return sorted(paths, key=rank, reverse=True)[: self.n_best]

    def to_json(self) -> dict[str, Any]:
        """Convert the trace to plain Python values that `json.dump` accepts."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "SearchTrace":
        """Restore a trace from the result of `to_json`. Raise DataError if `content` is invalid."""
        try:
            fields = dict(content)
            fields["prefix"] = tuple(fields["prefix"])
            fields["steps"] = tuple(
                tuple(_candidate_from_json(candidate) for candidate in step)
                for step in fields["steps"]
            )
            return cls(**fields)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"this is not a search trace ({error}); pass the value of the key 'record' "
                "in a file written by `seqloom search --out FILE.json`"
            ) from error


def _candidate_from_json(content: Mapping[str, Any]) -> TracedCandidate:
    reason = content["reason"]
    enums = {
        "fate": Fate(content["fate"]),
        "reason": None if reason is None else Reason(reason),
    }
    return TracedCandidate(**{**content, **enums})


def replay(trace: SearchTrace) -> list[Hypothesis]:
    """Compute the outputs of a traced search from the trace alone."""
    return [_hypothesis(trace, path) for path in trace.best()]


def _hypothesis(trace: SearchTrace, path: Sequence[CandidateIndex]) -> Hypothesis:
    tokens = tuple(trace.candidate(index).token for index in path)
    finished = tokens[-1] == END
    log_probabilities = tuple(trace.candidate(index).log_probability for index in path)
    return Hypothesis(
        tokens=tokens[:-1] if finished else tokens,
        finished=finished,
        log_probabilities=log_probabilities,
        score=trace.normalisation.score(sum(log_probabilities), len(path), finished),
        attention=None,
    )
