"""Recorder: looks over a search's shoulder and takes notes.

A search without a recorder does nothing for it. One with a recorder shows it, at every step, the
model's log-probabilities before any rule has touched them, and afterwards what was decided.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from torch import Tensor

from seqloom.decoding.record import ROOT, Candidate, Fate, Reason, Record
from seqloom.decoding.rules import FORBIDDEN, Rules
from seqloom.decoding.search import Request, normalise
from seqloom.decoding.top import top
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN

Key = tuple[int, int]
"""A candidate of the step at hand: the row that it continues, and its token."""


@dataclass(frozen=True)
class Terms:
    """What is the same for all steps of a search.

    width:  hypotheses of each source that are followed, or outputs drawn
    rows:   hypotheses of each source at the first step
    enough: finished hypotheses after which a source is done; None: no number of them is
    drawn:  tokens are drawn, not compared
    ranked: outputs are sorted by score, not in the order of their rows
    """

    kind: str
    width: int
    exponent: float
    rules: Rules
    rows: int = 1
    enough: int | None = None
    drawn: bool = False
    ranked: bool = True


@dataclass(frozen=True)
class Outcome:
    """What a step decided.

    compared: the candidates among which the search chose, and their log-probabilities
    ended:    those that are saved because they end in END
    going:    those that would go on
    rows:     for each row of the next step the candidate that it is; None: none of interest
    """

    compared: Mapping[Key, float]
    ended: Sequence[Key]
    going: Sequence[Key]
    rows: Sequence[Key | None]

    @cached_property
    def saved(self) -> set[Key]:
        return set(self.ended)

    @cached_property
    def alive(self) -> set[Key]:
        return set(self.going)

    @cached_property
    def kept(self) -> set[Key | None]:
        return set(self.rows)


@dataclass(frozen=True)
class _Row:
    """A hypothesis that is being extended: the candidate `place` of the last step of its source."""

    source: int
    place: int = ROOT
    total: float = 0.0
    written: tuple[int, ...] = (START,)


@dataclass
class _Source:
    """The notes on one source."""

    terms: Terms
    limit: int
    n_best: int
    prefix: tuple[int, ...]
    steps: list[tuple[Candidate, ...]] = field(default_factory=list)
    saved: int = 0

    def forced(self, position: int) -> int:
        return self.prefix[position] if position < len(self.prefix) else PAD

    def record(self) -> Record:
        terms = self.terms
        return Record(
            kind=terms.kind,
            width=terms.width,
            n_best=self.n_best,
            length_exponent=terms.exponent,
            ranked=terms.ranked,
            prefix=self.prefix,
            steps=tuple(self.steps),
        )


class Recorder:
    """Give it to a search with the Request, and ask it for the records when the search is done.

    least: the best tokens of each hypothesis that are noted at any rate. A beam compares as many
           of them as it is wide and no more; the others are outscored by these in any case
    """

    def __init__(self, least: int = 5) -> None:
        self._least = least
        self._sources: list[_Source] = []
        self._rows: list[_Row | None] = []
        self._seen: dict[Key, float] = {}

    @property
    def records(self) -> list[Record]:
        """One for each source, in their order."""
        return [source.record() for source in self._sources]

    def begin(self, request: Request, terms: Terms) -> None:
        """A search begins for the sources of a request."""
        first = len(self._sources)
        prefixes = request.prefixes or [()] * len(request.max_lengths)
        self._sources += [
            _Source(terms, limit, request.n_best, tuple(prefix))
            for limit, prefix in zip(request.max_lengths, prefixes, strict=True)
        ]
        sources = range(first, len(self._sources))
        self._rows = [_Row(source) for source in sources for _ in range(terms.rows)]

    def see(self, own: Tensor) -> None:
        """Take note of what the model would like best, before rules forbid it. own (R, V)"""
        width = max(self._least, self._sources[-1].terms.width)
        values, tokens = top(own, min(width, own.shape[1]))
        self._seen = {
            (row, token): value
            for row, several in enumerate(zip(tokens.tolist(), values.tolist(), strict=True))
            for token, value in zip(*several, strict=True)
        }

    def take(self, outcome: Outcome) -> None:
        """Take note of what became of every candidate."""
        own = self._seen | dict(outcome.compared)
        order = dict.fromkeys([*outcome.ended, *outcome.going, *outcome.compared, *self._seen])
        noted: dict[int, list[tuple[Key, _Row]]] = {}
        for key in order:
            row = self._rows[key[0]]
            if row is not None and own[key] > FORBIDDEN:
                noted.setdefault(row.source, []).append((key, row))
        grown: dict[Key, _Row] = {}
        for number, several in noted.items():
            source = self._sources[number]
            source.saved += sum(key in outcome.saved for key, _ in several)
            # Python sorts stably: of equal totals those come first that the search put first.
            if source.terms.ranked:
                several.sort(key=lambda pair: -(pair[1].total + own[pair[0]]))
            else:
                several.sort(key=lambda pair: pair[0][0])
            source.steps.append(
                tuple(self._candidate(row, key, own[key], outcome) for key, row in several)
            )
            for place, (key, row) in enumerate(several):
                grown[key] = _Row(number, place, row.total + own[key], (*row.written, key[1]))
        self._rows = [None if key is None else grown[key] for key in outcome.rows]

    def _candidate(self, row: _Row, key: Key, own: float, outcome: Outcome) -> Candidate:
        source = self._sources[row.source]
        total, length = row.total + own, len(row.written)
        score = normalise(total, length, source.terms.exponent)
        fate, reason = self._fate(row, key, outcome)
        return Candidate(key[1], row.place, own, total, score, fate, reason)

    def _fate(self, row: _Row, key: Key, outcome: Outcome) -> tuple[Fate, Reason | None]:
        if key in outcome.kept:
            return Fate.KEPT, None
        if key in outcome.saved:
            return Fate.FINISHED, None
        if key not in outcome.alive:
            return Fate.DROPPED, self._why_dropped(row, key, outcome)
        source = self._sources[row.source]
        enough = source.terms.enough
        many = enough is not None and source.saved >= enough
        return Fate.STOPPED, Reason.ENOUGH if many else Reason.LENGTH

    def _why_dropped(self, row: _Row, key: Key, outcome: Outcome) -> Reason:
        source = self._sources[row.source]
        if outcome.compared.get(key, FORBIDDEN) == FORBIDDEN:
            forced = source.forced(len(row.written) - 1)
            if rule := broken_rule(source.terms.rules, key[1], row.written, forced):
                return rule
        if source.terms.drawn:
            return Reason.NOT_DRAWN
        return Reason.END_OUTSCORED if key[1] == END else Reason.OUTSCORED


def broken_rule(rules: Rules, token: int, written: tuple[int, ...], forced: int) -> Reason | None:
    """The rule that forbids a token after START and what is written; None if it is allowed.

    forced: the token that must be put out here, PAD if any may
    """
    if forced != PAD:
        return None if token == forced else Reason.PREFIX
    if token in (PAD, START):
        return Reason.SPECIAL
    if token == UNKNOWN and not rules.allow_unknown:
        return Reason.UNKNOWN
    if token == END and len(written) - 1 < rules.min_length:
        return Reason.MIN_LENGTH
    size = rules.no_repeat_ngram
    if not size or len(written) < size:
        return None
    would_be = (*written[len(written) - size + 1 :], token)
    windows = (written[i : i + size] for i in range(len(written) - size + 1))
    return Reason.REPEAT if would_be in windows else None
