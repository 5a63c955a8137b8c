"""Beam search: the best beginnings, extended together.

At each step the `width` best tokens of each of the `width` hypotheses of a source give width²
candidates, sorted by total log-probability. Those among the `width` best that end in END are
saved and not expanded; the `width` best others go on. A source is done when enough hypotheses
are saved or its outputs are as long as they may be. Answers are ranked by log p / length^exponent.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqloom.decoding.history import ROOT, History
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.rules import FORBIDDEN, Prefixes, Rules
from seqloom.decoding.search import Request, Stepper, log_softmax
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
    def at_start(cls, decoder: Stepper, memory: Memory, steps: int) -> "Front":
        """One empty hypothesis for each source."""
        sources = torch.arange(memory.mask.shape[0], device=memory.mask.device)
        return cls(
            totals=torch.zeros_like(sources, dtype=torch.float32).unsqueeze(1),
            written=torch.full_like(sources, START).unsqueeze(1),
            nodes=torch.full_like(sources, ROOT),
            sources=sources,
            state=decoder.start(memory, steps),
        )

    def rows(self, columns: Tensor) -> Tensor:
        """(B, N) columns between 0 and K -> (B · N,) rows."""
        size, width = self.totals.shape
        first = torch.arange(size, device=columns.device).unsqueeze(1) * width
        return (first + columns).flatten()


@dataclass(frozen=True)
class Candidates:
    """All the continuations that a step considers: the C best tokens of each hypothesis.

    totals:  (B, K · C) log-probability of the hypothesis with the token
    tokens:  (B, K · C)
    parents: (B, K · C) the hypothesis that is continued, between 0 and K
    """

    totals: Tensor
    tokens: Tensor
    parents: Tensor


@dataclass(frozen=True)
class Verdict:
    """What becomes of the candidates.

    ended:   (B, K)  which hypotheses are saved, with END after them
    going:   (B, K') which candidates go on
    totals:  (B, K') their log-probability; -inf where fewer than K' are left
    """

    ended: Tensor
    going: Tensor
    totals: Tensor


def propose(totals: Tensor, allowed: Tensor, width: int) -> Candidates:
    """The `width` best tokens of each hypothesis. totals (B, K), allowed (B · K, V)"""
    count = min(width, allowed.shape[1])
    if count == 1:  # faster than topk, and of equal tokens it takes the first, as greedy does
        best, tokens = allowed.max(dim=1, keepdim=True)
    else:
        best, tokens = allowed.topk(count, dim=1)  # (B · K, C)
    size, hypotheses = totals.shape
    grown = totals.unsqueeze(2) + best.view(size, hypotheses, count)
    parents = torch.arange(hypotheses, device=totals.device).repeat_interleave(count)
    return Candidates(grown.flatten(1), tokens.view(size, -1), parents.expand(size, -1))


def judge(candidates: Candidates, hypotheses: int, width: int) -> Verdict:
    """Of the `width` best candidates those with END are saved; the `width` best others go on."""
    totals, ends = candidates.totals, candidates.tokens == END
    count = min(width, totals.shape[1])
    leaders = totals.topk(count, dim=1).indices
    leading = torch.zeros_like(ends).scatter_(1, leaders, True)
    saved = leading & ends & (totals > FORBIDDEN)
    going = totals.masked_fill(ends, FORBIDDEN).topk(count, dim=1)
    ended = saved.view(len(saved), hypotheses, -1).any(dim=2)
    return Verdict(ended, going.indices, going.values)


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

        length: tokens put out so far, ends: nodes of (B, K) ENDs, nodes: of (B, K') tokens
        """
        hypotheses = verdict.ended.shape[1]
        facts = torch.cat([verdict.ended, verdict.totals > FORBIDDEN], dim=1).cpu().numpy()
        ended, alive = facts[:, :hypotheses], facts[:, hypotheses:]
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
        front: Front | None = Front.at_start(decoder, memory, max(request.max_lengths))
        while front is not None:
            front = self._extend(decoder, front, prefixes, history, harvest)
        return [
            history.best(leaves, source, self.length_exponent, request.n_best)
            for source, leaves in enumerate(harvest.leaves)
        ]

    def _extend(
        self,
        decoder: Stepper,
        front: Front,
        prefixes: Prefixes,
        history: History,
        harvest: Harvest,
    ) -> Front | None:
        """One more token for every hypothesis; None when no source is left."""
        (size, hypotheses), length = front.totals.shape, front.written.shape[1]
        step = decoder.step(front.written[:, -1], front.state)
        history.look(step.attention, size * hypotheses)
        own = log_softmax(step.logits)  # (R, V)
        forced = prefixes.at(length - 1, front.sources.repeat_interleave(hypotheses))
        candidates = propose(front.totals, self.rules(own, front.written, forced), self.width)
        verdict = judge(candidates, hypotheses, self.width)
        # Here, and only here, every candidate is known together with what becomes of it.

        everyone = torch.arange(size * hypotheses, device=own.device)
        ends = history.add(torch.full_like(everyone, END), own[:, END], front.nodes, everyone)
        parents = front.rows(candidates.parents.gather(1, verdict.going))  # (B · K',)
        tokens = candidates.tokens.gather(1, verdict.going).flatten()
        nodes = history.add(tokens, own[parents, tokens], front.nodes[parents], parents)

        stay = harvest.gather(verdict, length, ends, nodes)
        if len(stay) == 0:
            return None
        width = verdict.going.shape[1]
        kept = (stay.unsqueeze(1) * width + torch.arange(width, device=stay.device)).flatten()
        rows = parents[kept]
        # One selection both reorders the hypotheses and drops the sources that are done.
        state = step.state.select(rows)
        return Front(
            totals=verdict.totals[stay],
            written=torch.cat([front.written[rows], tokens[kept].unsqueeze(1)], dim=1),
            nodes=kept + nodes.start,
            sources=front.sources[stay],
            state=state if len(stay) == size else state.keep_sources(stay),
        )
