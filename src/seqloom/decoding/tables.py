"""Greedy and beam search as tables on the device: one line for each step, one column for each row.

`enter` takes in the logits of a step and does nothing that the host would have to wait for; what
the outputs are is read from the tables when all is done.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqloom.decoding.beam import Beam
from seqloom.decoding.candidates import Candidates, judge
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.rules import FORBIDDEN
from seqloom.decoding.search import Request, log_softmax
from seqloom.text.vocabulary import END, PAD, START

Array = NDArray[Any]


class Tables:
    """What both searches keep. B sources of K hypotheses each, R = B · K rows, T steps.

    last:    (R,)       the tokens that go into the next step
    sources: (R,)       the source of each row
    clock:   ()         how many tokens have been put out
    done:    (B,)       which sources need no further step
    written: (R, 1 + T) START and the tokens so far, if a rule asks for them
    """

    def __init__(
        self, search: Greedy | Beam, width: int, size: int, steps: int, device: torch.device
    ):
        self.search, self.size, self.width, self.steps = search, size, width, steps
        rows = size * width
        self.sources = torch.arange(size, device=device).repeat_interleave(width)
        self.last = torch.full((rows,), START, device=device)
        self.clock = torch.zeros((), dtype=torch.long, device=device)
        self.limits = torch.ones(size, dtype=torch.long, device=device)
        self.done = torch.zeros(size, dtype=torch.bool, device=device)
        self.prefixes = torch.full((steps, size), PAD, device=device)
        self.keeps_written = search.rules.no_repeat_ngram > 0
        room = 1 + steps if self.keeps_written else 1
        self.written = torch.full((rows, room), START, device=device)

    def ask(self, request: Request) -> None:
        """Take in what is wanted for each source; columns left over are done at once."""
        limits = np.ones(self.size, dtype=np.int64)
        limits[: len(request.max_lengths)] = request.max_lengths
        self.limits.copy_(torch.from_numpy(limits))
        if request.prefixes is None:
            return
        prefixes = np.full((self.steps, self.size), PAD, dtype=np.int64)
        for source, prefix in enumerate(request.prefixes):
            prefixes[: len(prefix), source] = prefix
        self.prefixes.copy_(torch.from_numpy(prefixes))

    def clear(self) -> None:
        """Before the first step."""
        self.last.fill_(START)
        self.clock.zero_()
        self.done.zero_()
        self.written.fill_(START)

    def allowed(self, logits: Tensor, forced: bool) -> Tensor:
        """(R, V) the model's own log-probabilities of what may come next, -inf elsewhere."""
        allowed = log_softmax(logits)
        wanted = None
        if forced:
            here = self.prefixes.index_select(0, self.clock.view(1)).squeeze(0)  # (B,)
            wanted = here.repeat_interleave(self.width)
        self.search.rules.forbid(allowed, self.written, wanted, self.clock)
        return allowed

    def all_done(self) -> bool:
        """The host waits for the device here, and when the tables are read."""
        return bool(self.done.all())

    def enter(self, logits: Tensor, forced: bool) -> Tensor | None:
        """Take in a step (R, V) -> (R,) the rows that go on, None if each goes on in its place."""
        raise NotImplementedError

    def read(self, request: Request) -> list[list[Hypothesis]]:
        """The hypotheses of each source, best first."""
        raise NotImplementedError


class GreedyTables(Tables):
    """tokens, log_probabilities: (T, B) of every step"""

    search: Greedy

    def __init__(
        self, search: Greedy, size: int, steps: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        super().__init__(search, 1, size, steps, device)
        self.tokens = torch.full((steps, size), PAD, device=device)
        self.log_probabilities = torch.zeros(steps, size, dtype=dtype, device=device)

    def enter(self, logits: Tensor, forced: bool) -> Tensor | None:
        best, tokens = self.allowed(logits, forced).max(dim=1)
        here = self.clock.view(1)
        self.tokens.index_copy_(0, here, tokens.unsqueeze(0))
        self.log_probabilities.index_copy_(0, here, best.unsqueeze(0))
        self.last.copy_(tokens)
        self.clock += 1
        if self.keeps_written:
            self.written.index_copy_(1, self.clock.view(1), tokens.unsqueeze(1))
        self.done |= (tokens == END) | (self.limits <= self.clock)
        return None

    def read(self, request: Request) -> list[list[Hypothesis]]:
        size, limits = len(request.max_lengths), np.array(request.max_lengths)
        steps = int(self.clock)
        tokens = self.tokens[:steps, :size].cpu().numpy()
        own = self.log_probabilities[:steps, :size].double().cpu().numpy()
        ends = tokens == END
        finished = ends.any(axis=0)
        lengths = np.minimum(np.where(finished, ends.argmax(axis=0) + 1, steps), limits)
        finished &= tokens[lengths - 1, np.arange(size)] == END
        return [
            [found]
            for found in outputs(tokens.T, own.T, lengths, finished, self.search.length_exponent)
        ]


def outputs(
    tokens: Array, own: Array, lengths: Array, finished: Array, exponent: float
) -> list[Hypothesis]:
    """One hypothesis for each line of tokens (N, T), which has lengths (N,), END included."""
    put_out = np.arange(tokens.shape[1]) < lengths[:, None]
    totals = np.where(put_out, own, 0.0).sum(axis=1)
    lines = zip(
        map(tuple, tokens.tolist()),
        map(tuple, own.tolist()),
        lengths.tolist(),
        finished.tolist(),
        (totals / lengths**exponent).tolist(),
        strict=True,
    )
    return [
        Hypothesis(words[: length - ended], ended, numbers[:length], score, None)
        for words, numbers, length, ended, score in lines
    ]


class BeamTables(Tables):
    """One line a step, one column a row: a hypothesis that goes on, and one that ended.

    whole:  (T, 4, R) of what goes on its token and the row it comes from; of what ended the row
            it comes from, and whether there is one
    real:   (T, 4, R) log-probability of its token and of all; the same of what ended
    totals: (B, K) log-probability so far; -inf where there is no such hypothesis
    saved:  (B,) how many have ended
    stops:  (B,) after how many tokens a source was done
    """

    search: Beam

    def __init__(
        self, search: Beam, size: int, steps: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        super().__init__(search, search.width, size, steps, device)
        rows = size * search.width
        self.whole = torch.zeros(steps, 4, rows, dtype=torch.long, device=device)
        self.real = torch.zeros(steps, 4, rows, dtype=dtype, device=device)
        self.totals = torch.zeros(size, search.width, dtype=dtype, device=device)
        self.saved = torch.zeros(size, dtype=torch.long, device=device)
        self.stops = torch.zeros(size, dtype=torch.long, device=device)
        self.first_rows = torch.arange(size, device=device).unsqueeze(1) * search.width

    def clear(self) -> None:
        super().clear()
        self.totals.fill_(FORBIDDEN)
        self.totals[:, 0].zero_()
        self.saved.zero_()
        self.stops.zero_()

    def enter(self, logits: Tensor, forced: bool) -> Tensor | None:
        allowed = self.allowed(logits, forced)
        verdict = judge(Candidates.of(self.totals, allowed, self.width), self.width)
        leaders, going = verdict.leaders, verdict.going
        ended = (verdict.ended & ~self.done.unsqueeze(1)).long()
        parents = self.first_rows + going.parents
        here = self.clock.view(1)
        whole = (going.tokens, parents, self.first_rows + leaders.parents, ended)
        self.whole.index_copy_(0, here, torch.stack(whole).view(1, 4, -1))
        real = (going.own, going.totals, leaders.own, leaders.totals)
        self.real.index_copy_(0, here, torch.stack(real).view(1, 4, -1))

        self.totals.copy_(going.totals)
        parents = parents.flatten()
        self.last.copy_(going.tokens.flatten())
        self.clock += 1
        if self.keeps_written:
            self.written.copy_(self.written.index_select(0, parents))
            self.written.index_copy_(1, self.clock.view(1), self.last.unsqueeze(1))
        self._finish(ended)
        return parents

    def _finish(self, ended: Tensor) -> None:
        """Which sources need no further step? ended (B, K)"""
        self.saved += ended.sum(dim=1)
        enough = self.saved >= (self.search.finished or self.width)
        nothing_left = self.totals.amax(dim=1) == FORBIDDEN
        over = enough | (self.limits <= self.clock) | nothing_left
        self.stops.copy_(torch.where(over & ~self.done, self.clock, self.stops))
        self.done |= over

    def read(self, request: Request) -> list[list[Hypothesis]]:
        size, steps = len(request.max_lengths), int(self.clock)
        whole, real = self.whole[:steps].cpu().numpy(), self.real[:steps].double().cpu().numpy()
        stops = self.stops[:size].cpu().numpy()
        picked = self._pick(whole, real, stops, request.n_best)
        return trace(whole, real, picked, size, self.search.length_exponent)

    def _pick(self, whole: Array, real: Array, stops: Array, n_best: int) -> Array:
        """(N, 4) the n_best of each source: source, its last step, its column, has it ended?

        First those that ended, then those that were still going when their source was done.
        """
        size, width = len(stops), self.width
        shape = (len(whole), -1, width)
        flags = whole[:, 3].reshape(shape)[:, :size] > 0  # (T, B, K)
        steps = np.arange(len(whole))[:, None, None]
        last = (steps == stops[:, None] - 1) & (real[:, 1].reshape(shape)[:, :size] > FORBIDDEN)
        leaves = []
        for ended, which, totals in ((1, flags, real[:, 3]), (0, last, real[:, 1])):
            step, source, column = np.nonzero(which)
            total = totals.reshape(shape)[step, source, column]
            score = total / (step + 1.0) ** self.search.length_exponent
            kind = np.full(len(step), ended)
            leaves.append(np.stack([source, step, source * width + column, kind, score]))
        all_leaves = np.concatenate(leaves, axis=1)
        source, _, _, kind, score = all_leaves
        order = np.lexsort((-score, -kind, source))
        source = source[order]
        rank = np.arange(len(order)) - np.searchsorted(source, source)
        return all_leaves[:4, order[rank < n_best]].T.astype(np.int64)


def trace(
    whole: Array, real: Array, picked: Array, size: int, exponent: float
) -> list[list[Hypothesis]]:
    """Follow hypotheses (N, 4) back from their last steps to their first, all at once."""
    source, last, column, ended = picked.T
    tokens = np.full((len(picked), len(whole)), PAD)
    own = np.zeros((len(picked), len(whole)))
    row = column.copy()
    for step in range(len(whole) - 1, -1, -1):
        here = last == step
        closing = np.flatnonzero(here & (ended == 1))
        going = np.flatnonzero((last > step) | (here & (ended == 0)))
        tokens[closing, step], own[closing, step] = END, real[step, 2, column[closing]]
        tokens[going, step] = whole[step, 0, row[going]]
        own[going, step] = real[step, 0, row[going]]
        row[closing] = whole[step, 2, column[closing]]
        row[going] = whole[step, 1, row[going]]
    found = outputs(tokens, own, last + 1, ended == 1, exponent)
    answers: list[list[Hypothesis]] = [[] for _ in range(size)]
    for number, hypothesis in zip(source.tolist(), found, strict=True):
        answers[number].append(hypothesis)
    return answers


def tables_for(
    search: Greedy | Beam, size: int, steps: int, dtype: torch.dtype, device: torch.device
) -> Tables:
    """The search, as tables for this many sources and steps."""
    if isinstance(search, Greedy):
        return GreedyTables(search, size, steps, dtype, device)
    return BeamTables(search, size, steps, dtype, device)
