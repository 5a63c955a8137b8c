"""Beam search: the best beginnings, extended together.

At each step the `width` best tokens of each of the `width` hypotheses of a source give width²
candidates, sorted by total log-probability. Those among the `width` best that end in END are
saved and not expanded; the `width` best others go on. A source is done when enough hypotheses
are saved or its outputs are as long as they may be. Answers are ranked by log p / length^exponent.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqloom.decoding.candidates import Candidates, Picked, Verdict, judge
from seqloom.decoding.history import ROOT, History
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.recorder import Key, Outcome, Recorder, Terms
from seqloom.decoding.rules import FORBIDDEN, Prefixes, Rules
from seqloom.decoding.search import Request, Stepper, log_softmax
from seqloom.models.interface import Memory, State
from seqloom.text.vocabulary import START


@dataclass(frozen=True)
class Front:
    """The hypotheses that are being extended: K of each source, R = B · K rows.

    totals:  (B, K)     log-probability so far; -inf where there is no such hypothesis
    written: (R, 1 + t) START and the tokens so far
    nodes:   (R,)       the node of the last token in the history
    sources: (B,)       which sources of the memory are still being worked on
    """

    totals: Tensor
    written: Tensor
    nodes: Tensor
    sources: Tensor
    state: State

    @classmethod
    def at_start(cls, decoder: Stepper, memory: Memory, request: Request) -> "Front":
        """One empty hypothesis for each source."""
        sources = torch.arange(memory.mask.shape[0], device=memory.mask.device)
        return cls(
            totals=torch.zeros_like(sources, dtype=torch.float32).unsqueeze(1),
            written=torch.full_like(sources, START).unsqueeze(1),
            nodes=torch.full_like(sources, ROOT),
            sources=sources,
            state=decoder.start(
                memory, max(request.max_lengths), need_attention=request.keep_attention is not None
            ),
        )

    @cached_property
    def _first_rows(self) -> Tensor:
        """(B, 1)"""
        size, width = self.totals.shape
        return torch.arange(0, size * width, width, device=self.totals.device).unsqueeze(1)

    def rows(self, columns: Tensor) -> Tensor:
        """(B, N) columns between 0 and K -> (B · N,) rows."""
        return (self._first_rows + columns).flatten()

    def every_source(self) -> Tensor:
        """(R,) the source of each row."""
        return self.sources.repeat_interleave(self.totals.shape[1])

    def enter(self, history: History, picked: Picked) -> range:
        """Add a node for each of these continuations (B, N); the numbers of the nodes."""
        rows = self.rows(picked.parents)
        return history.add(picked.tokens.flatten(), picked.own.flatten(), self.nodes[rows], rows)

    def advance(self, going: Picked, nodes: range, state: State, stay: Tensor | None) -> "Front":
        """One token further, by continuations (B, K') whose nodes these are.

        stay: (B',) the sources that go on; None: all
        """
        parents, tokens = self.rows(going.parents), going.tokens.flatten()  # (B · K',)
        numbers = torch.arange(nodes.start, nodes.stop, device=tokens.device)
        totals, sources = going.totals, self.sources
        if stay is not None:
            parents, tokens, numbers = (
                one.view(totals.shape)[stay].flatten() for one in (parents, tokens, numbers)
            )
            totals, sources, state = totals[stay], sources[stay], state.keep_sources(stay)
        return Front(
            totals=totals,
            written=torch.cat([self.written[parents], tokens.unsqueeze(1)], dim=1),
            nodes=numbers,
            sources=sources,
            # One selection both reorders the hypotheses and drops those of sources that are done.
            state=state.select(parents),
        )


class Harvest:
    """The hypotheses of each source that go no further, as nodes of the history."""

    def __init__(self, limits: Sequence[int], enough: int) -> None:
        self.leaves: list[list[int]] = [[] for _ in limits]
        self._limits = np.array(limits)  # of the sources that are being worked on, as all below
        self._enough = enough
        self._sources = np.arange(len(limits))
        self._saved = np.zeros(len(limits), dtype=np.int64)

    def gather(
        self, facts: NDArray[np.bool_], length: int, ends: range, nodes: range
    ) -> NDArray[np.int64]:
        """Save what has ended, and all the rest of a source that is done -> (B',) who stays.

        facts: of the verdict, length: tokens put out so far
        ends:  nodes of (B, K') ENDs, none if none has ended; nodes: of (B, K') tokens
        """
        ended, alive = facts
        self._saved += ended.sum(axis=1)
        done = (self._saved >= self._enough) | (self._limits <= length) | ~alive.any(axis=1)
        self._save(ended, ends)
        self._save(alive & done[:, None], nodes)
        stay = np.flatnonzero(~done)
        self._limits, self._sources = self._limits[stay], self._sources[stay]
        self._saved = self._saved[stay]
        return stay

    def _save(self, which: NDArray[np.bool_], nodes: range) -> None:
        for row in np.flatnonzero(which):
            self.leaves[self._sources[row // which.shape[1]]].append(nodes[row])


@dataclass(frozen=True)
class Beam:
    """Beam search of any width over any decoder; a width of 1 is greedy search.

    finished: hypotheses to save before a source is done; None: as many as the beam is wide
    """

    width: int
    finished: int | None = None
    length_exponent: float = 1.0
    rules: Rules = field(default_factory=Rules)

    @torch.inference_mode()
    def __call__(
        self, decoder: Stepper, memory: Memory, request: Request
    ) -> list[list[Hypothesis]]:
        """For each source at most n_best hypotheses: the finished by score, then the others."""
        request.check(memory.mask.shape[0])
        prefixes = Prefixes(request.prefixes, memory.mask.device)
        history = History(request.keep_attention, memory.mask)
        harvest = Harvest(request.max_lengths, self.finished or self.width)
        if request.recorder is not None:
            request.recorder.begin(request, self._terms)
        front: Front | None = Front.at_start(decoder, memory, request)
        while front is not None:
            front = self._extend(decoder, front, prefixes, history, harvest, request.recorder)
        return [
            history.best(leaves, source, self.length_exponent, request.n_best)
            for source, leaves in enumerate(harvest.leaves)
        ]

    @property
    def _terms(self) -> Terms:
        """For a recorder: what is the same for all steps."""
        enough = self.finished or self.width
        return Terms("beam", self.width, self.length_exponent, self.rules, enough=enough)

    def _extend(
        self,
        decoder: Stepper,
        front: Front,
        prefixes: Prefixes,
        history: History,
        harvest: Harvest,
        recorder: Recorder | None,
    ) -> Front | None:
        """One more token for every hypothesis; None when no source is left."""
        (size, hypotheses), length = front.totals.shape, front.written.shape[1]
        step = decoder.step(front.written[:, -1], front.state)
        history.look(step.attention, size * hypotheses)
        allowed = log_softmax(step.logits)  # (R, V)
        if recorder is not None:
            recorder.see(allowed)
        forced = prefixes.at(length - 1, front.every_source)
        self.rules.forbid(allowed, front.written, forced)
        candidates = Candidates.of(front.totals, allowed, self.width)
        verdict = judge(candidates, self.width)

        facts = verdict.facts()
        ends = front.enter(history, verdict.leaders) if facts[0].any() else range(0)
        nodes = front.enter(history, verdict.going)
        left = harvest.gather(facts, length, ends, nodes)
        stay = torch.from_numpy(left).to(allowed.device)
        if recorder is not None:
            # Here, and only here, every candidate is known together with what becomes of it.
            recorder.take(noted(front, candidates, verdict, stay))
        if len(stay) == 0:
            return None
        everyone = len(stay) == size
        return front.advance(verdict.going, nodes, step.state, None if everyone else stay)


def noted(front: Front, candidates: Candidates, verdict: Verdict, stay: Tensor) -> Outcome:
    """What a step decided, for a recorder: in rows of the front. stay (B',) sources that go on"""

    def keys(parents: Tensor, tokens: Tensor) -> list[Key]:
        return list(zip(front.rows(parents).tolist(), tokens.flatten().tolist(), strict=True))

    size, count = candidates.tokens.shape
    places = torch.arange(count, device=stay.device).expand(size, -1)
    compared = keys(places // candidates.each, candidates.tokens)
    leaders = keys(verdict.leaders.parents, verdict.leaders.tokens)
    ended = verdict.ended.flatten().tolist()
    alive = (verdict.going.totals > FORBIDDEN).flatten().tolist()
    going: list[Key | None] = [
        key if lives else None
        for key, lives in zip(keys(verdict.going.parents, verdict.going.tokens), alive, strict=True)
    ]
    width = verdict.going.totals.shape[1]
    return Outcome(
        compared=dict(zip(compared, candidates.own.flatten().tolist(), strict=True)),
        ended=[key for key, yes in zip(leaders, ended, strict=True) if yes],
        going=[key for key in going if key is not None],
        rows=[going[source * width + place] for source in stay.tolist() for place in range(width)],
    )
