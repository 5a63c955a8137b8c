"""Beam search: the best beginnings, extended together.

At each step the `width` best tokens of each of the `width` hypotheses of a source give width²
candidates, sorted by total log-probability. Those among the `width` best that end in END are
saved and not expanded; the `width` best others go on. A source is done when enough hypotheses
are saved or its outputs are as long as they may be. Answers are ranked by log p / length^exponent.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqloom.decoding.history import ROOT, History
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.recorder import Key, Outcome, Recorder, Terms
from seqloom.decoding.rules import FORBIDDEN, Prefixes, Rules
from seqloom.decoding.search import Request, Stepper, log_softmax
from seqloom.decoding.top import top
from seqloom.models.interface import Memory, State
from seqloom.text.vocabulary import END, START


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
                memory, max(request.max_lengths), watched=request.keep_attention is not None
            ),
        )

    def rows(self, columns: Tensor) -> Tensor:
        """(B, N) columns between 0 and K -> (B · N,) rows."""
        size, width = self.totals.shape
        first = torch.arange(size, device=columns.device).unsqueeze(1) * width
        return (first + columns).flatten()


@dataclass(frozen=True)
class Candidates:
    """All the continuations that a step considers: the C best tokens of each hypothesis.

    totals: (B, K · C) log-probability of the hypothesis with the token
    own:    (B, K · C) log-probability of the token alone
    tokens: (B, K · C)
    each:   C, so that candidate i continues hypothesis i // C
    """

    totals: Tensor
    own: Tensor
    tokens: Tensor
    each: int

    @classmethod
    def of(cls, totals: Tensor, allowed: Tensor, width: int) -> "Candidates":
        """The `width` best tokens of each hypothesis. totals (B, K), allowed (B · K, V)"""
        own, tokens = top(allowed, min(width, allowed.shape[1]))  # (B · K, C)
        size, each = len(totals), own.shape[1]
        grown = totals.reshape(-1, 1) + own
        return cls(grown.view(size, -1), own.view(size, -1), tokens.view(size, -1), each)

    def pick(self, places: Tensor) -> "Picked":
        """Some of them: (B, N)"""
        return Picked(
            totals=self.totals.gather(1, places),
            own=self.own.gather(1, places),
            tokens=self.tokens.gather(1, places),
            parents=places // self.each,
        )


@dataclass(frozen=True)
class Picked:
    """Some candidates, (B, N) each; `parents` are the hypotheses that they continue, 0 … K - 1."""

    totals: Tensor
    own: Tensor
    tokens: Tensor
    parents: Tensor


@dataclass(frozen=True)
class Verdict:
    """What becomes of the candidates.

    leaders: (B, K') the best, best first
    ended:   (B, K') which of them end in END, and are saved
    going:   (B, K') the best that do not; their total is -inf where fewer than K' are left
    """

    leaders: Picked
    ended: Tensor
    going: Picked


def judge(candidates: Candidates, width: int) -> Verdict:
    """Of the `width` best candidates those with END are saved; the `width` best others go on."""
    totals = candidates.totals
    count = min(width, totals.shape[1])
    # A hypothesis ends in one way only, so that `width` others are among twice as many.
    leading = totals.topk(min(2 * width, totals.shape[1]), dim=1)
    ends = candidates.tokens.gather(1, leading.indices) == END
    others = leading.values.masked_fill(ends, FORBIDDEN).topk(count, dim=1)
    going = candidates.pick(leading.indices.gather(1, others.indices))
    leaders = candidates.pick(leading.indices[:, :count])
    ended = ends[:, :count] & (leaders.totals > FORBIDDEN)
    return Verdict(leaders, ended, replace(going, totals=others.values))


class Harvest:
    """The hypotheses of each source that go no further, as nodes of the history.

    Kept in ordinary memory, as is the decision which sources are done: once a step the host
    waits for the device, here and nowhere else.
    """

    def __init__(self, limits: Sequence[int], enough: int) -> None:
        self.leaves: list[list[int]] = [[] for _ in limits]
        self._limits = np.array(limits)  # of the sources that are being worked on, as all below
        self._enough = enough
        self._sources = np.arange(len(limits))
        self._saved = np.zeros(len(limits), dtype=np.int64)

    def gather(self, verdict: Verdict, length: int, ends: range, nodes: range) -> Tensor:
        """Save what has ended, and all the rest of a source that is done -> (B',) who stays.

        length: tokens put out so far, ends: nodes of (B, K') ENDs, nodes: of (B, K') tokens
        """
        facts = torch.stack([verdict.ended, verdict.going.totals > FORBIDDEN]).cpu().numpy()
        ended, alive = facts[0], facts[1]
        self._saved += ended.sum(axis=1)
        done = (self._saved >= self._enough) | (self._limits <= length) | ~alive.any(axis=1)
        self._save(ended, ends)
        self._save(alive & done[:, None], nodes)
        stay = np.flatnonzero(~done)
        self._limits, self._sources = self._limits[stay], self._sources[stay]
        self._saved = self._saved[stay]
        return torch.from_numpy(stay).to(verdict.ended.device)

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
        forced = prefixes.at(length - 1, front.sources.repeat_interleave(hypotheses))
        self.rules.forbid(allowed, front.written, forced)
        candidates = Candidates.of(front.totals, allowed, self.width)
        verdict = judge(candidates, self.width)

        leaders, going = verdict.leaders, verdict.going
        rows, tokens = front.rows(leaders.parents), leaders.tokens.flatten()
        ends = history.add(tokens, leaders.own.flatten(), front.nodes[rows], rows)
        parents, tokens = front.rows(going.parents), going.tokens.flatten()  # (B · K',)
        nodes = history.add(tokens, going.own.flatten(), front.nodes[parents], parents)

        stay = harvest.gather(verdict, length, ends, nodes)
        if recorder is not None:
            # Here, and only here, every candidate is known together with what becomes of it.
            recorder.take(noted(front, candidates, verdict, stay))
        if len(stay) == 0:
            return None
        width = going.totals.shape[1]
        kept = torch.arange(size * width, device=stay.device)
        if len(stay) < size:
            kept = kept.view(size, width)[stay].flatten()
        rows = parents[kept]
        # One selection both reorders the hypotheses and drops the sources that are done.
        state = step.state.select(rows)
        return Front(
            totals=going.totals[stay],
            written=torch.cat([front.written[rows], tokens[kept].unsqueeze(1)], dim=1),
            nodes=kept + nodes.start,
            sources=front.sources[stay],
            state=state if len(stay) == size else state.keep_sources(stay),
        )


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
