"""Tracer: builds a `SearchTrace` for each source while a search runs.

At every step, the search passes two things to its tracer: the log-probabilities of the model,
before any token is forbidden (`observe_log_probabilities`), and the decisions of the step
(`observe_outcome`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from torch import Tensor

from seqloom.decoding.fast.top_k import top_k
from seqloom.decoding.hypothesis import LengthNormalisation
from seqloom.decoding.rules import FORBIDDEN, Rules
from seqloom.decoding.trace import NO_PARENT, Fate, Reason, SearchTrace, TracedCandidate
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN

CandidateKey = tuple[int, int]
"""Identifies a candidate of the current step: the row that it extends, and its token."""


@dataclass(frozen=True)
class SearchDescription:
    """The properties of a search that a tracer records. They are the same for all steps.

    kind:         beam, greedy, sample or exhaustive
    width:        beam width or number of samples; 1 for greedy and exhaustive search
    initial_rows: number of hypotheses per source in the first step
    sampled:      True if tokens are drawn at random
    ranked:       True if outputs are sorted by score; False for greedy search and sampling
    rank_unfinished: True if outputs that reach the length limit rank among the finished ones
    """

    kind: str
    width: int
    normalisation: LengthNormalisation
    rules: Rules
    initial_rows: int = 1
    sampled: bool = False
    ranked: bool = True
    rank_unfinished: bool = False


@dataclass(frozen=True)
class StepOutcome:
    """What a search did with its candidates in one step.

    A candidate is a hypothesis, extended by one token.

    compared:   candidates that the search compared, with the log-probabilities of their tokens
    ended:      candidates that end in END and become finished hypotheses
    continuing: selected candidates without END. The next step extends them. If the search for
                their source stops at this step, they become unfinished outputs instead
    next_rows:  for each row of the next step, the candidate that the row extends; None for an
                unused or finished row
    """

    compared: Mapping[CandidateKey, float]
    ended: Sequence[CandidateKey]
    continuing: Sequence[CandidateKey]
    next_rows: Sequence[CandidateKey | None]

    @cached_property
    def ended_set(self) -> set[CandidateKey]:
        return set(self.ended)

    @cached_property
    def continuing_set(self) -> set[CandidateKey]:
        return set(self.continuing)

    @cached_property
    def kept_set(self) -> set[CandidateKey | None]:
        return set(self.next_rows)


@dataclass(frozen=True)
class _Row:
    """A hypothesis that the next step extends.

    source:    index of the source
    index:     The hypothesis was a candidate of the previous step. This is its index among the
               candidates that the tracer recorded in that step for the same source. NO_PARENT
               before the first step
    total:     log-probability so far
    generated: START and the tokens so far
    """

    source: int
    index: int = NO_PARENT
    total: float = 0.0
    generated: tuple[int, ...] = (START,)


@dataclass
class _Source:
    """The trace of one source, under construction."""

    search: SearchDescription
    n_best: int
    prefix: tuple[int, ...]
    max_length: int
    steps: list[tuple[TracedCandidate, ...]] = field(default_factory=list)

    def forced_token(self, position: int) -> int:
        return self.prefix[position] if position < len(self.prefix) else PAD

    def trace(self) -> SearchTrace:
        return SearchTrace(
            kind=self.search.kind,
            width=self.search.width,
            n_best=self.n_best,
            length_penalty=self.search.normalisation.penalty,
            length_counts_end=self.search.normalisation.counts_end,
            ranked=self.search.ranked,
            prefix=self.prefix,
            steps=tuple(self.steps),
            complete_length=self.max_length if self.search.rank_unfinished else None,
        )


class Tracer:
    """Records a search. Pass it as `SearchRequest.tracer`, then read `traces`.

    min_candidates: for each hypothesis, the tracer records at least this many candidates: those
                    with the most probable tokens. The search itself may compare fewer: beam search
                    compares only `width` tokens per hypothesis. Default: 5.
    """

    def __init__(self, min_candidates: int = 5) -> None:
        self._min_candidates = min_candidates
        self._sources: list[_Source] = []
        self._rows: list[_Row | None] = []
        self._likely: dict[CandidateKey, float] = {}

    @property
    def traces(self) -> list[SearchTrace]:
        """One trace per source, in the order of the sources."""
        return [source.trace() for source in self._sources]

    def start_search(
        self,
        search: SearchDescription,
        n_best: int,
        prefixes: Sequence[Sequence[int]],
        max_lengths: Sequence[int],
    ) -> None:
        """Start one trace per source. A search calls this method before its first step.

        prefixes:    for each source, the tokens with which its outputs must start; may be empty
        max_lengths: maximum number of output tokens for each source
        """
        first = len(self._sources)
        self._sources += [
            _Source(search, n_best, tuple(prefix), max_length)
            for prefix, max_length in zip(prefixes, max_lengths, strict=True)
        ]
        sources = range(first, len(self._sources))
        self._rows = [_Row(source) for source in sources for _ in range(search.initial_rows)]

    def observe_log_probabilities(self, log_probabilities: Tensor) -> None:
        """Record the most probable tokens of each hypothesis.

        log_probabilities: (R, V) for R hypotheses, as the model returns them, before the search
                           forbids any token
        """
        count = max(self._min_candidates, self._sources[-1].search.width)
        values, tokens = top_k(log_probabilities, min(count, log_probabilities.shape[1]))
        self._likely = {
            (row, token): value
            for row, columns in enumerate(zip(tokens.tolist(), values.tolist(), strict=True))
            for token, value in zip(*columns, strict=True)
        }

    def observe_outcome(self, outcome: StepOutcome) -> None:
        """Record what the search did with each candidate of the step."""
        log_probabilities = self._likely | dict(outcome.compared)
        keys = dict.fromkeys(
            [*outcome.ended, *outcome.continuing, *outcome.compared, *self._likely]
        )
        by_source: dict[int, list[tuple[CandidateKey, _Row]]] = {}
        for key in keys:
            row = self._rows[key[0]]
            if row is not None and log_probabilities[key] > FORBIDDEN:
                by_source.setdefault(row.source, []).append((key, row))
        next_rows: dict[CandidateKey, _Row] = {}
        for source_index, candidates in by_source.items():
            source = self._sources[source_index]
            # The sort is stable: candidates with equal totals stay in the order of the search.
            if source.search.ranked:
                candidates.sort(key=lambda pair: -(pair[1].total + log_probabilities[pair[0]]))
            else:
                candidates.sort(key=lambda pair: pair[0][0])
            source.steps.append(
                tuple(
                    self._candidate(row, key, log_probabilities[key], outcome)
                    for key, row in candidates
                )
            )
            for index, (key, row) in enumerate(candidates):
                total = row.total + log_probabilities[key]
                next_rows[key] = _Row(source_index, index, total, (*row.generated, key[1]))
        self._rows = [None if key is None else next_rows[key] for key in outcome.next_rows]

    def _candidate(
        self, row: _Row, key: CandidateKey, log_probability: float, outcome: StepOutcome
    ) -> TracedCandidate:
        total, steps = row.total + log_probability, len(row.generated)
        normalisation = self._sources[row.source].search.normalisation
        fate, reason = self._fate(row, key, outcome)
        return TracedCandidate(
            token=key[1],
            parent=row.index,
            log_probability=log_probability,
            total=total,
            score=normalisation.score(total, steps, key[1] == END),
            fate=fate,
            reason=reason,
        )

    def _fate(
        self, row: _Row, key: CandidateKey, outcome: StepOutcome
    ) -> tuple[Fate, Reason | None]:
        if key in outcome.kept_set:
            return Fate.KEPT, None
        if key in outcome.ended_set:
            return Fate.FINISHED, None
        if key not in outcome.continuing_set:
            return Fate.DROPPED, self._drop_reason(row, key, outcome)
        # `row.generated` contains START, so its length is that of the candidate.
        at_limit = len(row.generated) >= self._sources[row.source].max_length
        return Fate.STOPPED, Reason.LENGTH if at_limit else Reason.ENOUGH

    def _drop_reason(self, row: _Row, key: CandidateKey, outcome: StepOutcome) -> Reason:
        source = self._sources[row.source]
        if outcome.compared.get(key, FORBIDDEN) == FORBIDDEN:
            forced = source.forced_token(len(row.generated) - 1)
            if rule := broken_rule(source.search.rules, key[1], row.generated, forced):
                return rule
            if source.search.rules.extensions:
                return Reason.EXTENSION
        if source.search.sampled:
            return Reason.NOT_DRAWN
        return Reason.END_OUTSCORED if key[1] == END else Reason.OUTSCORED


def broken_rule(rules: Rules, token: int, generated: tuple[int, ...], forced: int) -> Reason | None:
    """Return why the rules forbid `token` as the next token; None if they allow it.

    Before the minimum length, END is forbidden. A search makes an exception if all other tokens are
    forbidden too. This function ignores that exception.

    generated: START and the tokens so far
    forced:    token that must come next; PAD if no token is forced
    """
    if forced != PAD:
        return None if token == forced else Reason.PREFIX
    if token in (PAD, START):
        return Reason.SPECIAL
    if token == UNKNOWN and not rules.allow_unknown:
        return Reason.UNKNOWN
    if token == END and len(generated) - 1 < rules.min_length:
        return Reason.MIN_LENGTH
    size = rules.no_repeat_ngram
    if not size or len(generated) < size:
        return None
    last_ngram = (*generated[len(generated) - size + 1 :], token)
    ngrams = (generated[i : i + size] for i in range(len(generated) - size + 1))
    return Reason.REPEAT if last_ngram in ngrams else None
