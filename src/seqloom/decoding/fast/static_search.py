"""Greedy and beam search on tensors of fixed shape, for CUDA graphs and compiled code.

A search stores its decisions in tables (T, R) on the device, for T steps and R hypotheses. `update`
writes the entries of one step and never waits for the device. When the search is done,
`copy_tables` starts to copy the tables to the host, and `hypotheses` reads the copies.

A search can continue in another, smaller one that keeps only the sources which are not done. Each of
the two has the tables of its own steps, and `join_parts` joins them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqloom.core.garbage_collection import without_garbage_collection
from seqloom.decoding.beam import Beam, Candidates, select_candidates
from seqloom.decoding.fast.kernels import can_use_kernels, log_sum_exp, top_k_of_rows
from seqloom.decoding.fast.top_k import top_k
from seqloom.decoding.greedy import Greedy
from seqloom.decoding.hypothesis import Hypothesis, LengthNormalisation
from seqloom.decoding.rules import FORBIDDEN
from seqloom.decoding.search import SearchRequest, log_softmax
from seqloom.text.vocabulary import END, PAD, START

Array = NDArray[Any]


class StaticSearch:
    """Base class of `StaticGreedy` and `StaticBeam`.

    B sources with K hypotheses each are R = B · K rows; T is the maximum number of steps.

    last_tokens: (R,)       newest token of each row, the decoder's input in the next step
    sources:     (R,)       index of the source of each row
    position:    ()         number of tokens generated so far
    max_lengths: (B,)       maximum number of tokens of each source
    done:        (B,)       True for sources that need no further step
    prefixes:    (T, B)     forced tokens; PAD where no token is forced
    generated:   (R, 1 + T) START and the tokens so far, for the rule against repeated n-grams.
                            Without this rule, only START: (R, 1)
    """

    def __init__(
        self, search: Greedy | Beam, width: int, size: int, steps: int, device: torch.device
    ):
        self.search, self.size, self.width, self.steps = search, size, width, steps
        rows = size * width
        self.sources = torch.arange(size, device=device).repeat_interleave(width)
        self.last_tokens = torch.full((rows,), START, device=device)
        self.position = torch.zeros((), dtype=torch.long, device=device)
        self.max_lengths = torch.ones(size, dtype=torch.long, device=device)
        self.done = torch.zeros(size, dtype=torch.bool, device=device)
        self.prefixes = torch.full((steps, size), PAD, device=device)
        self.keeps_generated = search.rules.no_repeat_ngram > 0
        length = 1 + steps if self.keeps_generated else 1
        self.generated = torch.full((rows, length), START, device=device)

    def load_request(self, request: SearchRequest) -> None:
        """Copy the maximum lengths and prefixes of a request to the device.

        The tensors of this object may have entries for more sources than the request has. The
        unused entries get a maximum length of 1 token.
        """
        max_lengths = np.ones(self.size, dtype=np.int64)
        max_lengths[: len(request.max_lengths)] = request.max_lengths
        copy_to_device(max_lengths, self.max_lengths)
        if request.prefixes is None:
            return
        prefixes = np.full((self.steps, self.size), PAD, dtype=np.int64)
        for source, prefix in enumerate(request.prefixes):
            prefixes[: len(prefix), source] = prefix
        copy_to_device(prefixes, self.prefixes)

    def reset(self) -> None:
        """Return to the state before the first step."""
        self.last_tokens.fill_(START)
        self.position.zero_()
        self.done.zero_()
        self.generated.fill_(START)

    def best_tokens(self, logits: Tensor, has_prefixes: bool, count: int) -> tuple[Tensor, Tensor]:
        """Find the most probable allowed tokens of each row: logits (R, V) -> (R, C), (R, C)

        Return their log-probabilities, best first, and the tokens. C is `count`, or V if V is
        smaller. The logits are changed in place.

        has_prefixes: True if outputs must start with given tokens (`self.prefixes`). At the
                      positions of these tokens, all other tokens are forbidden
        """
        count = min(count, logits.shape[1])
        # With score_prefix = False, forced tokens get a log-probability of 0, not a logit.
        are_logits_enough = self.search.rules.score_prefix or not has_prefixes
        if are_logits_enough and can_use_kernels(logits, count):
            normaliser = log_sum_exp(logits)  # forbidden tokens have a share in the softmax
            self._forbid(logits, has_prefixes)
            best, tokens = top_k_of_rows(logits, count)
            return best - normaliser.unsqueeze(1), tokens
        log_probabilities = log_softmax(logits)
        self._forbid(log_probabilities, has_prefixes)
        return top_k(log_probabilities, count)

    def _forbid(self, values: Tensor, has_prefixes: bool) -> None:
        """Set the logits or log-probabilities (R, V) of forbidden tokens to -inf, in place."""
        forced = None
        if has_prefixes:
            source_tokens = self.prefixes.index_select(0, self.position.view(1)).squeeze(0)  # (B,)
            forced = source_tokens.repeat_interleave(self.width)
        self.search.rules.forbid(values, self.generated, forced, self.position)

    def load(self, other: "StaticSearch", sources: Tensor, rows: Tensor, count: int) -> None:
        """Copy `count` sources from another search, so that this search continues with them.

        The tables of earlier steps are not copied. `sources` has one entry for each source of this
        search; those after the first `count` are unused.

        sources: (B,) indices of sources of the other search
        rows:    (R,) indices of rows of the other search
        """
        self.position.copy_(other.position)
        self.last_tokens.copy_(other.last_tokens[rows])
        self.max_lengths.copy_(other.max_lengths[sources])
        self.prefixes[: other.steps].copy_(other.prefixes[:, sources])
        if self.keeps_generated:
            self.generated[:, : 1 + other.steps].copy_(other.generated[rows])
        self.done.copy_(other.done[sources])
        self.done[count:] = True

    def unfinished(self, count: int) -> Array:
        """Return which of the first `count` sources need a further step, as indices (B',).

        The host waits for the device.
        """
        return np.flatnonzero(~self.done[:count].cpu().numpy())

    def update(self, logits: Tensor, has_prefixes: bool) -> Tensor | None:
        """Extend the hypotheses (rows) by one token, chosen from the logits (R, V).

        Beam search may drop a row, or continue one row in several new rows, each with another
        token. Therefore return, for each new row, the index of the old row that it extends: (R,).
        Greedy search extends every row once and returns None.

        has_prefixes: True if outputs must start with given tokens
        """
        raise NotImplementedError

    def copy_tables(self, steps: slice, count: int) -> "HostTables":
        """Start to copy the tables of these steps and of the first `count` sources to the host.

        The host does not wait for the device. The next search may overwrite the tables.
        """
        raise NotImplementedError

    def hypotheses(
        self, parts: Sequence["SearchPart"], request: SearchRequest
    ) -> list[list[Hypothesis]]:
        """Return at most n_best hypotheses of each source, best first.

        parts: the parts of the search, from the first step to the last
        """
        raise NotImplementedError


class HostTables:
    """Copies of the tables of a search on the host."""

    def __init__(self, tables: Sequence[Tensor]) -> None:
        """Start to copy these tensors. Do not wait for the device."""
        is_cuda = tables[0].is_cuda
        # The device writes only to pinned memory while the host does other work.
        self._copies = [
            torch.empty(table.shape, dtype=table.dtype, pin_memory=is_cuda) for table in tables
        ]
        for copied, table in zip(self._copies, tables, strict=True):
            copied.copy_(table, non_blocking=True)
        self._event = torch.cuda.Event() if is_cuda else None
        if self._event is not None:
            self._event.record(torch.cuda.current_stream(tables[0].device))

    def arrays(self) -> list[Array]:
        """Wait until the copies are complete, and return them."""
        if self._event is not None:
            self._event.synchronize()
        return [copied.numpy() for copied in self._copies]


@dataclass(frozen=True)
class SearchPart:
    """Some steps of a search, for the sources that were not done before these steps.

    sources: (N,) indices of these sources in the request
    steps:   number of steps until the end of this part, those of earlier parts included
    tables:  the tables of these steps and sources. Their last dimension is that of the rows, or of
             the sources if it is their only one
    """

    sources: Array
    steps: int
    tables: HostTables


def join_parts(parts: Sequence[SearchPart]) -> list[Array]:
    """Join the tables of the parts of a search to tables with all steps and sources.

    At the steps of a part that does not contain a source, the tables of this source are 0. A table
    without steps has one entry per source, which is taken from the last part with this source.
    """
    first = parts[0]
    joined = first.tables.arrays()
    if len(parts) == 1:
        return joined
    size, total = len(first.sources), parts[-1].steps
    joined = [
        table
        if table.ndim == 1
        else np.concatenate([table, np.zeros((total - len(table), *table.shape[1:]), table.dtype)])
        for table in joined
    ]
    for earlier, part in pairwise(parts):
        for table, later in zip(joined, part.tables.arrays(), strict=True):
            if table.ndim == 1:
                table[part.sources] = later
                continue
            width = table.shape[-1] // size
            rows = (part.sources[:, None] * width + np.arange(width)).ravel()
            table[earlier.steps : part.steps, ..., rows] = later
    return joined


def copy_to_device(values: Array, destination: Tensor) -> None:
    """Copy an array into a tensor. The host does not wait for a GPU."""
    copied = torch.from_numpy(values)
    # A copy from other than pinned memory waits until the GPU has finished all earlier work.
    source = copied.pin_memory() if destination.is_cuda else copied
    destination.copy_(source, non_blocking=True)


class StaticGreedy(StaticSearch):
    """Greedy search on tensors of fixed shape, for B sources and at most T steps.

    tokens:            (T, B) token that was chosen for each source at each step
    log_probabilities: (T, B) log-probability of that token
    """

    search: Greedy

    def __init__(
        self, search: Greedy, size: int, steps: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        super().__init__(search, 1, size, steps, device)
        self.tokens = torch.full((steps, size), PAD, device=device)
        self.log_probabilities = torch.zeros(steps, size, dtype=dtype, device=device)

    def update(self, logits: Tensor, has_prefixes: bool) -> Tensor | None:
        best, tokens = (each.squeeze(1) for each in self.best_tokens(logits, has_prefixes, 1))
        line = self.position.view(1)
        self.tokens.index_copy_(0, line, tokens.unsqueeze(0))
        self.log_probabilities.index_copy_(0, line, best.unsqueeze(0))
        self.last_tokens.copy_(tokens)
        self.position += 1
        if self.keeps_generated:
            self.generated.index_copy_(1, self.position.view(1), tokens.unsqueeze(1))
        self.done |= (tokens == END) | (self.max_lengths <= self.position)
        return None

    def copy_tables(self, steps: slice, count: int) -> HostTables:
        return HostTables([self.tokens[steps, :count], self.log_probabilities[steps, :count]])

    def hypotheses(
        self, parts: Sequence[SearchPart], request: SearchRequest
    ) -> list[list[Hypothesis]]:
        tokens, log_probabilities = join_parts(parts)  # (T, B)
        steps, size = tokens.shape
        max_lengths = np.array(request.max_lengths)
        is_end = tokens == END
        finished = is_end.any(axis=0)
        lengths = np.minimum(np.where(finished, is_end.argmax(axis=0) + 1, steps), max_lengths)
        finished &= tokens[lengths - 1, np.arange(size)] == END
        hypotheses = make_hypotheses(
            tokens.T,
            log_probabilities.T.astype(float),
            lengths,
            finished,
            self.search.normalisation,
        )
        return [[hypothesis] for hypothesis in hypotheses]


# Indices into the second dimension of `StaticBeam.indices`. TOKEN and PARENT are the token and the
# extended hypothesis of a candidate in `BeamSelection.continuing`. END_PARENT is the extended
# hypothesis of a candidate in `BeamSelection.best`, and HAS_ENDED is 1 if that candidate ends in END.
TOKEN, PARENT, END_PARENT, HAS_ENDED = range(4)
# Indices into the second dimension of `StaticBeam.values`. LOG_PROBABILITY and TOTAL are the
# log-probability of the last token and of all tokens of a candidate in `BeamSelection.continuing`.
# END_LOG_PROBABILITY and END_TOTAL are those of a candidate in `BeamSelection.best`.
LOG_PROBABILITY, TOTAL, END_LOG_PROBABILITY, END_TOTAL = range(4)


class StaticBeam(StaticSearch):
    """Beam search on tensors of fixed shape.

    B sources with K hypotheses each are R = B · K rows; T is the maximum number of steps.

    Each step selects two lists of K candidates per source:

        continuing  the best candidates without END. The next step extends them.
        best        the best candidates, with or without END. Those with END are finished outputs.

    The tables `indices` and `values` store both lists for every step, one candidate per row.

    indices:  (T, 4, R) for `continuing`: the last token, and the hypothesis that the candidate
                        extends. For `best`: the hypothesis that the candidate extends, and 1 if it
                        ends in END. Hypotheses are counted from 0 for each source
    values:   (T, 4, R) for `continuing`, then for `best`: log-probability of the last token, and
                        log-probability of all tokens
    totals:   (B, K)    log-probability of each hypothesis; -inf if the hypothesis does not exist
    finished: (B,)      number of finished outputs
    scores:   (B, C)    the C best scores of finished outputs; -inf where there are fewer
    stops:    (B,)      number of steps after which the search for a source stopped; 0 if it is
                        still running
    """

    search: Beam

    def __init__(
        self, search: Beam, size: int, steps: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        super().__init__(search, search.width, size, steps, device)
        rows = size * search.width
        self.indices = torch.zeros(steps, 4, rows, dtype=torch.long, device=device)
        self.values = torch.zeros(steps, 4, rows, dtype=dtype, device=device)
        self.totals = torch.zeros(size, search.width, dtype=dtype, device=device)
        self.finished = torch.zeros(size, dtype=torch.long, device=device)
        self.scores = torch.zeros(size, search.stop_after, dtype=dtype, device=device)
        self.stops = torch.zeros(size, dtype=torch.long, device=device)
        self.first_rows = torch.arange(size, device=device).unsqueeze(1) * search.width

    def reset(self) -> None:
        super().reset()
        self.totals.fill_(FORBIDDEN)
        self.totals[:, 0].zero_()
        self.finished.zero_()
        self.scores.fill_(FORBIDDEN)
        self.stops.zero_()

    def load(self, other: StaticSearch, sources: Tensor, rows: Tensor, count: int) -> None:
        super().load(other, sources, rows, count)
        assert isinstance(other, StaticBeam)
        self.totals.copy_(other.totals[sources])
        self.finished.copy_(other.finished[sources])
        self.scores.copy_(other.scores[sources])
        self.stops.copy_(other.stops[sources])

    def update(self, logits: Tensor, has_prefixes: bool) -> Tensor | None:
        best, tokens = self.best_tokens(logits, has_prefixes, self.search.tokens_per_hypothesis)
        candidates = Candidates.of(self.totals, best, tokens)
        selection = select_candidates(candidates, self.width)
        leading, continuing = selection.best, selection.continuing
        ended = (selection.ended & ~self.done.unsqueeze(1)).long()
        line = self.position.view(1)
        indices = (continuing.tokens, continuing.parents, leading.parents, ended)
        self.indices.index_copy_(0, line, torch.stack(indices).view(1, 4, -1))
        values = (
            continuing.log_probabilities,
            continuing.totals,
            leading.log_probabilities,
            leading.totals,
        )
        self.values.index_copy_(0, line, torch.stack(values).view(1, 4, -1))

        self.totals.copy_(continuing.totals)
        parents = (self.first_rows + continuing.parents).flatten()
        self.last_tokens.copy_(continuing.tokens.flatten())
        self.position += 1
        if self.keeps_generated:
            self.generated.copy_(self.generated.index_select(0, parents))
            self.generated.index_copy_(1, self.position.view(1), self.last_tokens.unsqueeze(1))
        self._update_done(ended, leading.totals)
        return parents

    def _update_done(self, ended: Tensor, totals: Tensor) -> None:
        """Mark the sources that need no further step.

        ended:  (B, K) 1 for each of the K best candidates that ends in END, else 0. Always 0 for a
                source whose search has stopped already
        totals: (B, K) log-probability of these candidates
        """
        self.finished += ended.sum(dim=1)
        rule = self.search.score_rule
        if rule is None:
            enough = self.finished >= self.search.stop_after
        else:
            self.scores.copy_(rule.add_finished(self.scores, totals, ended.bool(), self.position))
            enough = rule.is_over(self.scores, self.totals[:, 0], self.position, self.max_lengths)
        nothing_left = self.totals.amax(dim=1) == FORBIDDEN
        over = enough | (self.max_lengths <= self.position) | nothing_left
        self.stops.copy_(torch.where(over & ~self.done, self.position, self.stops))
        self.done |= over

    def copy_tables(self, steps: slice, count: int) -> HostTables:
        rows = count * self.width
        return HostTables(
            [self.indices[steps, :, :rows], self.values[steps, :, :rows], self.stops[:count]]
        )

    def hypotheses(
        self, parts: Sequence[SearchPart], request: SearchRequest
    ) -> list[list[Hypothesis]]:
        indices, values, stops = join_parts(parts)
        size, values = len(stops), values.astype(float)
        leaves = self._best_leaves(indices, values, stops, request)
        return trace_back(indices, values, leaves, size, self.search.normalisation)

    def _best_leaves(
        self, indices: Array, values: Array, stops: Array, request: SearchRequest
    ) -> "Leaves":
        """Find the n_best hypotheses of each source. Return where they end in the tables.

        They are sorted by score, but all hypotheses with END come before those without END. If
        `Beam.rank_unfinished` is True, a hypothesis that reached the length limit is treated like
        a hypothesis with END.

        indices, values: the tables in which the search stores the candidates of every step
        stops:           (B,) number of steps of the search for each source
        """
        size, width = len(stops), self.width
        shape = (len(indices), -1, width)
        has_ended = indices[:, HAS_ENDED].reshape(shape)[:, :size] > 0  # (T, B, K)
        steps = np.arange(len(indices))[:, None, None]
        exists = values[:, TOTAL].reshape(shape)[:, :size] > FORBIDDEN
        was_active = (steps == stops[:, None] - 1) & exists
        groups, group_scores = [], []
        for ended, mask, totals in (
            (True, has_ended, values[:, END_TOTAL]),
            (False, was_active, values[:, TOTAL]),
        ):
            step, source, column = np.nonzero(mask)
            total = totals.reshape(shape)[step, source, column]
            is_end = np.full(len(step), ended)
            groups.append(Leaves(source, step, source * width + column, is_end))
            group_scores.append(self.search.normalisation.score(total, step + 1, is_end))
        leaves, scores = Leaves.concatenate(groups), np.concatenate(group_scores)
        is_complete = leaves.ended
        if self.search.rank_unfinished:
            is_complete = is_complete | (
                leaves.step + 1 == np.array(request.max_lengths)[leaves.source]
            )
        order = np.lexsort((-scores, ~is_complete, leaves.source))
        sorted_source = leaves.source[order]
        rank = np.arange(len(order)) - np.searchsorted(sorted_source, sorted_source)
        return leaves.select(order[rank < request.n_best])


@dataclass(frozen=True)
class Leaves:
    """The ends of N hypotheses.

    `StaticBeam` stores the candidates of all steps in two tables. These fields say where the tables
    contain the last token of each hypothesis.

    source: (N,) index of the source of each hypothesis
    step:   (N,) step that generated the last token: index in the first dimension of the tables
    row:    (N,) row of the last token: index in the last dimension of the tables
    ended:  (N,) True if the last token is END
    """

    source: Array
    step: Array
    row: Array
    ended: Array

    @classmethod
    def concatenate(cls, groups: "list[Leaves]") -> "Leaves":
        return cls(
            source=np.concatenate([group.source for group in groups]),
            step=np.concatenate([group.step for group in groups]),
            row=np.concatenate([group.row for group in groups]),
            ended=np.concatenate([group.ended for group in groups]),
        )

    def select(self, indices: Array) -> "Leaves":
        """Return only the hypotheses with these indices (N',), in this order."""
        return Leaves(
            self.source[indices], self.step[indices], self.row[indices], self.ended[indices]
        )


def trace_back(
    indices: Array, values: Array, leaves: Leaves, size: int, normalisation: LengthNormalisation
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each source.

    Each hypothesis is read from its last token back to its first token.

    indices, values: the tables in which `StaticBeam` stores the candidates of every step
    leaves:          where each hypothesis ends in these tables
    size:            number of sources
    """
    count, steps = len(leaves.source), len(indices)
    first_row = leaves.source * (indices.shape[2] // size)  # row of a source's first hypothesis
    tokens = np.full((count, steps), PAD)
    log_probabilities = np.zeros((count, steps))
    row = leaves.row.copy()
    for step in range(steps - 1, -1, -1):
        is_last = leaves.step == step
        ending = np.flatnonzero(is_last & leaves.ended)
        going = np.flatnonzero((leaves.step > step) | (is_last & ~leaves.ended))
        tokens[ending, step] = END
        log_probabilities[ending, step] = values[step, END_LOG_PROBABILITY, leaves.row[ending]]
        tokens[going, step] = indices[step, TOKEN, row[going]]
        log_probabilities[going, step] = values[step, LOG_PROBABILITY, row[going]]
        row[ending] = first_row[ending] + indices[step, END_PARENT, leaves.row[ending]]
        row[going] = first_row[going] + indices[step, PARENT, row[going]]
    hypotheses = make_hypotheses(
        tokens, log_probabilities, leaves.step + 1, leaves.ended, normalisation
    )
    by_source: list[list[Hypothesis]] = [[] for _ in range(size)]
    for source, hypothesis in zip(leaves.source.tolist(), hypotheses, strict=True):
        by_source[source].append(hypothesis)
    return by_source


def make_hypotheses(
    tokens: Array,
    log_probabilities: Array,
    lengths: Array,
    finished: Array,
    normalisation: LengthNormalisation,
) -> list[Hypothesis]:
    """Build N `Hypothesis` objects from arrays.

    tokens, log_probabilities: (N, T) padded after the last token of each hypothesis
    lengths:                   (N,)   number of tokens of each hypothesis, END included
    finished:                  (N,)   True if the last of these tokens is END
    """
    is_generated = np.arange(tokens.shape[1]) < lengths[:, None]
    totals = np.where(is_generated, log_probabilities, 0.0).sum(axis=1)
    lines = zip(
        map(tuple, tokens.tolist()),
        map(tuple, log_probabilities.tolist()),
        lengths.tolist(),
        finished.tolist(),
        normalisation.score(totals, lengths, finished).tolist(),
        strict=True,
    )
    with without_garbage_collection():
        return [
            Hypothesis(line_tokens[: length - ended], ended, line_values[:length], score, None)
            for line_tokens, line_values, length, ended, score in lines
        ]


def build_static_search(
    search: Greedy | Beam, size: int, steps: int, dtype: torch.dtype, device: torch.device
) -> StaticSearch:
    """Build the fixed-shape version of a search, for `size` sources and at most `steps` steps."""
    if isinstance(search, Greedy):
        return StaticGreedy(search, size, steps, dtype, device)
    return StaticBeam(search, size, steps, dtype, device)
