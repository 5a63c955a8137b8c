"""Beam search: keeps the `width` most probable partial outputs of a source and extends them all.

Each step takes the `width` most probable tokens of each of the `width` hypotheses and sorts these
width² candidates by total log-probability. Candidates with END that are among the `width` best are
saved and not extended. The `width` best candidates without END form the next beam. The search stops
for a source when enough hypotheses are saved, when the length limit is reached, or when no
candidate can be extended. Hypotheses are then ranked by their score, log p / length^length_penalty.

Three settings change this algorithm to the beam search of Hugging Face transformers: `stopping`,
`extra_candidate` and `rank_unfinished`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqloom.config.schema.names import StoppingRule
from seqloom.decoding.constraints import Constraints
from seqloom.decoding.fast.top_k import top_k
from seqloom.decoding.hypothesis import Hypothesis, LengthNormalisation
from seqloom.decoding.rules import FORBIDDEN
from seqloom.decoding.search import ScoredSearch, SearchRequest, StepDecoder, log_softmax
from seqloom.decoding.token_tree import ROOT, TokenTree
from seqloom.decoding.tracer import CandidateKey, StepOutcome, Tracer
from seqloom.models.interface import Memory, State
from seqloom.text.vocabulary import END, START


@dataclass(frozen=True)
class ScoreRule:
    """Stops the search for a source when its unfinished hypotheses cannot improve the result.

    The result consists of the `count` best finished hypotheses. The search stops when there
    are `count` finished hypotheses with at least the score of the best unfinished hypothesis.

    kind: The score of an unfinished hypothesis is log p / length^penalty. `kind` says which length
          is used:
          "estimate": its current length, like `early_stopping=False` in transformers
          "bound":    the maximum length, like `early_stopping="never"` in transformers. No
                      extension of the hypothesis can reach a higher score, because further tokens
                      only lower log p. The search therefore never misses a better output
    """

    kind: Literal["estimate", "bound"]
    count: int
    normalisation: LengthNormalisation

    def add_finished(
        self, scores: Tensor, totals: Tensor, ended: Tensor, length: int | Tensor
    ) -> Tensor:
        """Return the C best scores of finished hypotheses after a step: (B, C), best first

        C is `self.count`.

        scores: (B, C) the best scores before the step; -inf if fewer than C hypotheses have ended
        totals: (B, K) log-probability of each candidate of the step
        ended:  (B, K) True for the candidates that end in this step
        length: number of tokens of these candidates, END included
        """
        new_scores = self.normalisation.score(totals, length, True)
        merged = torch.cat([scores, new_scores.masked_fill(~ended, FORBIDDEN)], dim=1)
        return merged.topk(self.count, dim=1).values

    def is_over(
        self, scores: Tensor, active: Tensor, length: int | Tensor, max_lengths: Tensor
    ) -> Tensor:
        """Return True for each source for which the search stops: (B,)

        scores:      (B, C) the C best scores of finished hypotheses, best first
        active:      (B,)   log-probability of the best unfinished hypothesis
        length:      number of tokens of the unfinished hypotheses
        max_lengths: (B,)   maximum number of tokens of a hypothesis
        """
        best_length = max_lengths if self.kind == "bound" else length
        return self.normalisation.score(active, best_length, False) <= scores[:, -1]


@dataclass(frozen=True)
class Beam(ScoredSearch):
    """Beam search. With a width of 1 it equals greedy search.

    width:    number of hypotheses per source that each step extends
    finished: the search for a source stops once this many of its hypotheses have generated END.
              Default: None, which means `width`.
    stopping: "count" stops once `finished` hypotheses have ended. "estimate" and "bound" continue
              while an active hypothesis may still reach a better score (see `ScoreRule`). If the
              width is 1, they are the same as "count". Default: "count".
    extra_candidate: try the width + 1 most probable next tokens of each hypothesis, not only the
              `width` most probable ones. Default: False.
    rank_unfinished: rank hypotheses that reach the length limit among the finished ones. Default:
              False, which ranks them after the finished ones.

    `ScoredSearch` has the settings of the score and the rules.
    """

    width: int
    finished: int | None = None
    stopping: StoppingRule = "count"
    extra_candidate: bool = False
    rank_unfinished: bool = False

    @property
    def stop_after(self) -> int:
        """The number of finished hypotheses that the search needs before it may stop."""
        return self.finished or self.width

    @property
    def tokens_per_hypothesis(self) -> int:
        """How many of the most probable next tokens a step tries for each hypothesis."""
        return self.width + self.extra_candidate

    @property
    def score_rule(self) -> ScoreRule | None:
        """The rule that stops the search by comparing scores.

        None if the search stops after a number of finished hypotheses.
        """
        if self.stopping == "count" or self.width == 1:
            return None
        return ScoreRule(self.stopping, self.stop_after, self.normalisation)

    def __call__(
        self, decoder: StepDecoder, memory: Memory, request: SearchRequest
    ) -> list[list[Hypothesis]]:
        """Return at most n_best hypotheses per source.

        Finished hypotheses come before unfinished ones. Both groups are sorted by score, with the
        best first. If `rank_unfinished` is True, a hypothesis at the length limit counts as
        finished.
        """
        with torch.inference_mode():
            request.check(memory.mask.shape[0])
            constraints = Constraints(self.rules, request, memory.mask.device)
            tree = TokenTree(request.keep_attention, memory.mask)
            saved = SavedHypotheses(request.max_lengths, self.stop_after)
            request.start_trace(
                self.describe("beam", self.width, rank_unfinished=self.rank_unfinished)
            )
            finished = None
            if self.score_rule is not None:
                finished = FinishedScores.start(request, self.stop_after, memory)
            active: ActiveHypotheses | None
            active = ActiveHypotheses.start(decoder, memory, request, finished)

            def hypotheses_of(source: int) -> list[Hypothesis]:
                return tree.best_hypotheses(
                    saved.leaves[source],
                    source,
                    self.normalisation,
                    request.n_best,
                    complete_length=request.max_lengths[source] if self.rank_unfinished else None,
                )

            results: dict[int, list[Hypothesis]] = {}
            while active is not None:
                active = self._step(decoder, active, constraints, tree, saved, request.tracer)
                if request.on_finished is not None:
                    for source in saved.finished_sources:
                        results[source] = hypotheses_of(source)
                        request.on_finished(source, results[source])
            return [
                results[source] if source in results else hypotheses_of(source)
                for source in range(len(saved.leaves))
            ]

    def _step(
        self,
        decoder: StepDecoder,
        active: "ActiveHypotheses",
        constraints: Constraints,
        tree: TokenTree,
        saved: "SavedHypotheses",
        tracer: Tracer | None,
    ) -> "ActiveHypotheses | None":
        """Extend every hypothesis by one token.

        Return the hypotheses of the next step, or None if no source needs a further step.
        """
        (sources, hypotheses), length = active.totals.shape, active.generated.shape[1]
        step = decoder.step(active.generated[:, -1], active.state)
        tree.begin_step(step.attention, sources * hypotheses)
        log_probabilities = log_softmax(step.logits)  # (R, V)
        if tracer is not None:
            tracer.observe_log_probabilities(log_probabilities)
        constraints.forbid(log_probabilities, active.generated, active.source_of_rows)
        count = min(self.tokens_per_hypothesis, log_probabilities.shape[1])
        candidates = Candidates.of(active.totals, *top_k(log_probabilities, count))
        selection = select_candidates(candidates, self.width)
        finished, is_over = self._compare_scores(active, selection, length)

        has_ended, can_continue, *stops = selection.flags(is_over)
        end_nodes = active.add_to(tree, selection.best) if has_ended.any() else range(0)
        nodes = active.add_to(tree, selection.continuing)
        unfinished = saved.update(
            has_ended, can_continue, length, end_nodes, nodes, stops[0][:, 0] if stops else None
        )
        remaining = torch.from_numpy(unfinished).to(log_probabilities.device)
        if tracer is not None:
            tracer.observe_outcome(step_outcome(active, candidates, selection, remaining))
        if len(remaining) == 0:
            return None
        kept = None if len(remaining) == sources else remaining
        return active.advance(selection.continuing, nodes, step.state, kept, finished)

    def _compare_scores(
        self, active: "ActiveHypotheses", selection: "BeamSelection", length: int
    ) -> "tuple[FinishedScores | None, Tensor | None]":
        """Return the scores of the finished hypotheses after this step, and a mask (B,) that is
        True for each source for which the search stops.

        Both are None if the stopping rule only counts finished hypotheses and ignores scores.
        """
        rule, finished = self.score_rule, active.finished
        if rule is None or finished is None:
            return None, None
        scores = rule.add_finished(finished.scores, selection.best.totals, selection.ended, length)
        best_active = selection.continuing.totals[:, 0]
        is_over = rule.is_over(scores, best_active, length, finished.max_lengths)
        return replace(finished, scores=scores), is_over


@dataclass(frozen=True)
class Candidates:
    """The candidates that a step compares: each hypothesis, extended by each of its C best tokens.

    B is the number of sources and K is the number of hypotheses per source.

    totals:            (B, K · C) log-probability of the hypothesis including the token
    log_probabilities: (B, K · C) log-probability of the token
    tokens:            (B, K · C)
    per_hypothesis:    C. Candidate i extends hypothesis i // C of its source
    """

    totals: Tensor
    log_probabilities: Tensor
    tokens: Tensor
    per_hypothesis: int

    @classmethod
    def of(cls, totals: Tensor, best: Tensor, tokens: Tensor) -> "Candidates":
        """Build the candidates: extend each hypothesis by each of its C best tokens.

        totals: (B, K)     log-probability of each hypothesis
        best:   (B · K, C) log-probability of each of these tokens as the next token
        tokens: (B · K, C)
        """
        sources, new_totals = len(totals), totals.reshape(-1, 1) + best
        return cls(
            totals=new_totals.view(sources, -1),
            log_probabilities=best.view(sources, -1),
            tokens=tokens.view(sources, -1),
            per_hypothesis=tokens.shape[1],
        )

    def select(self, indices: Tensor) -> "SelectedCandidates":
        """Return the candidates with these indices (B, N)."""
        return SelectedCandidates(
            totals=self.totals.gather(1, indices),
            log_probabilities=self.log_probabilities.gather(1, indices),
            tokens=self.tokens.gather(1, indices),
            parents=indices // self.per_hypothesis,
        )


@dataclass(frozen=True)
class SelectedCandidates:
    """N candidates for each of B sources. A candidate is a hypothesis, extended by one token.

    All fields have the shape (B, N).

    totals:            log-probability of the hypothesis including the token
    log_probabilities: log-probability of the token
    tokens:            the token
    parents:           index of the extended hypothesis among the hypotheses of its source
    """

    totals: Tensor
    log_probabilities: Tensor
    tokens: Tensor
    parents: Tensor


@dataclass(frozen=True)
class BeamSelection:
    """The candidates that beam search selects in one step, for B sources.

    K' is the beam width, or the number of candidates per source if that number is smaller.

    best:       (B, K') the best candidates of each source, best first
    ended:      (B, K') True for each candidate of `best` that ends in END. The search saves these
                candidates as finished hypotheses
    continuing: (B, K') the best candidates without END. If a source has fewer than K' of them, the
                remaining entries have a log-probability (`totals`) of -inf
    """

    best: SelectedCandidates
    ended: Tensor
    continuing: SelectedCandidates

    def flags(self, is_over: Tensor | None = None) -> NDArray[np.bool_]:
        """Copy to the host the boolean values that decide whether the search stops.

        Return two or three boolean tables (B, K'), with K' candidates per source:

        - for the best candidates: True if the candidate ends in END
        - for the best candidates without END: True if the candidate exists. If a source has fewer
          than K' of them, the rest of its row is False
        - only if `is_over` is given: `is_over`, repeated in every column

        All tables are copied at once, so that the host waits for the device once per step.

        is_over: (B,) True for each source for which the search stops because of its scores
        """
        tables = [self.ended, self.continuing.totals > FORBIDDEN]
        if is_over is not None:
            tables.append(is_over.unsqueeze(1).expand_as(self.ended))
        return torch.stack(tables).cpu().numpy()


def select_candidates(candidates: Candidates, width: int) -> BeamSelection:
    """For each source, select the `width` best candidates and the `width` best without END."""
    totals = candidates.totals
    count = min(width, totals.shape[1])
    # Each of the `width` hypotheses has at most one candidate with END. So the 2 · width best
    # candidates, if there are so many, include at least `width` candidates without END.
    leading = totals.topk(min(2 * width, totals.shape[1]), dim=1)
    ends = candidates.tokens.gather(1, leading.indices) == END
    others = leading.values.masked_fill(ends, FORBIDDEN).topk(count, dim=1)
    continuing = candidates.select(leading.indices.gather(1, others.indices))
    best = candidates.select(leading.indices[:, :count])
    ended = ends[:, :count] & (best.totals > FORBIDDEN)
    return BeamSelection(best, ended, replace(continuing, totals=others.values))


@dataclass(frozen=True)
class FinishedScores:
    """Scores of the finished hypotheses of each source for which the search continues.

    The stopping rule (`ScoreRule`) compares these scores with those of active hypotheses.

    scores:      (B, C) the C best scores of each source; -inf if fewer hypotheses have finished
    max_lengths: (B,)   maximum number of output tokens of each source
    """

    scores: Tensor
    max_lengths: Tensor

    @classmethod
    def start(cls, request: SearchRequest, count: int, memory: Memory) -> "FinishedScores":
        max_lengths = torch.tensor(request.max_lengths, device=memory.mask.device)
        scores = torch.full((len(max_lengths), count), FORBIDDEN, device=memory.mask.device)
        return cls(scores, max_lengths)

    def select(self, sources: Tensor) -> "FinishedScores":
        return FinishedScores(self.scores[sources], self.max_lengths[sources])


@dataclass(frozen=True)
class ActiveHypotheses:
    """The hypotheses that the next step extends: K for each of B unfinished sources.

    The decoder processes them as a batch of R = B · K rows.

    totals:    (B, K)     log-probability so far; -inf where a hypothesis does not exist
    generated: (R, 1 + t) START and the tokens so far
    nodes:     (R,)       index of each row's last token in the `TokenTree`, which stores all tokens
    sources:   (B,)       index of each source in the batch that the search started with
    state:     decoder state
    finished:  scores of finished hypotheses; None if the search stops without comparing scores
    """

    totals: Tensor
    generated: Tensor
    nodes: Tensor
    sources: Tensor
    state: State
    finished: FinishedScores | None = None

    @classmethod
    def start(
        cls,
        decoder: StepDecoder,
        memory: Memory,
        request: SearchRequest,
        finished: FinishedScores | None,
    ) -> "ActiveHypotheses":
        """Start with one empty hypothesis per source."""
        sources = torch.arange(memory.mask.shape[0], device=memory.mask.device)
        return cls(
            totals=torch.zeros_like(sources, dtype=torch.float32).unsqueeze(1),
            generated=torch.full_like(sources, START).unsqueeze(1),
            nodes=torch.full_like(sources, ROOT),
            sources=sources,
            state=decoder.start(
                memory, max(request.max_lengths), need_attention=request.keep_attention is not None
            ),
            finished=finished,
        )

    @cached_property
    def _first_rows(self) -> Tensor:
        """(B, 1) row index of each source's first hypothesis; each source has K rows"""
        sources, hypotheses = self.totals.shape
        rows = torch.arange(0, sources * hypotheses, hypotheses, device=self.totals.device)
        return rows.unsqueeze(1)

    def rows(self, columns: Tensor) -> Tensor:
        """Convert hypothesis indices (B, N), which count from 0 in each source, to row indices
        (B · N,), which count from 0 in the whole batch."""
        return (self._first_rows + columns).flatten()

    def source_of_rows(self) -> Tensor:
        """(R,) for each hypothesis, the index of its source in the original batch"""
        return self.sources.repeat_interleave(self.totals.shape[1])

    def add_to(self, tree: TokenTree, candidates: SelectedCandidates) -> range:
        """Add the last tokens of these candidates (B, N) to the tree that stores all tokens.

        Return the indices of the new tree nodes.
        """
        rows = self.rows(candidates.parents)
        return tree.add(
            candidates.tokens.flatten(),
            candidates.log_probabilities.flatten(),
            self.nodes[rows],
            rows,
        )

    def advance(
        self,
        continuing: SelectedCandidates,
        nodes: range,
        state: State,
        remaining: Tensor | None,
        finished: FinishedScores | None,
    ) -> "ActiveHypotheses":
        """Return the hypotheses of the next step.

        continuing: the candidates that become the hypotheses of the next step
        nodes:      indices of their last tokens in the `TokenTree`, which stores all tokens
        state:      decoder state after the current step
        remaining:  indices of the sources for which the search continues; None for all sources
        finished:   scores of the finished hypotheses after the current step
        """
        parents, tokens = self.rows(continuing.parents), continuing.tokens.flatten()  # (B · K',)
        new_nodes = torch.arange(nodes.start, nodes.stop, device=tokens.device)
        totals, sources = continuing.totals, self.sources
        if remaining is not None:
            parents, tokens, new_nodes = (
                column.view(totals.shape)[remaining].flatten()
                for column in (parents, tokens, new_nodes)
            )
            totals, sources = totals[remaining], sources[remaining]
            state = state.keep_sources(remaining)
            finished = None if finished is None else finished.select(remaining)
        return ActiveHypotheses(
            totals=totals,
            generated=torch.cat([self.generated[parents], tokens.unsqueeze(1)], dim=1),
            nodes=new_nodes,
            sources=sources,
            # `parents` reorders the hypotheses and leaves out those of finished sources.
            state=state.select(parents),
            finished=finished,
        )


class SavedHypotheses:
    """The hypotheses that beam search has saved and does not extend further.

    leaves:           for each source, the index of the last token of each saved hypothesis in the
                      `TokenTree`, which stores all tokens
    finished_sources: the sources for which the search stopped in the latest step
    """

    def __init__(self, max_lengths: Sequence[int], stop_after: int) -> None:
        self.leaves: list[list[int]] = [[] for _ in max_lengths]
        self.finished_sources: list[int] = []
        self._stop_after = stop_after
        # These arrays have one entry per source for which the search continues.
        self._max_lengths = np.array(max_lengths)
        self._sources = np.arange(len(max_lengths))
        self._finished = np.zeros(len(max_lengths), dtype=np.int64)

    def update(
        self,
        has_ended: NDArray[np.bool_],
        can_continue: NDArray[np.bool_],
        length: int,
        end_nodes: range,
        nodes: range,
        is_over: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.int64]:
        """Save the hypotheses that end in this step. If the search stops for a source, also save
        its unfinished hypotheses.

        Return the indices of the sources for which the search continues.

        Each of the B sources has two lists of K' candidates: the best candidates, and the best
        candidates without END. A node is the index of a token in the `TokenTree`, which stores
        all tokens.

        has_ended:    (B, K') first list: True for candidates that end in END
        can_continue: (B, K') second list: True for candidates that the next step can extend
        length:       number of tokens generated so far, including this step
        end_nodes:    node of the last token of each candidate in the first list. Empty if no
                      candidate has ended
        nodes:        node of the last token of each candidate in the second list
        is_over:      (B,) True for each source for which the search stops because of its scores.
                      Default: None, which stops the search when enough hypotheses have finished
        """
        self._finished += has_ended.sum(axis=1)
        done = (
            (self._finished >= self._stop_after if is_over is None else is_over)
            | (self._max_lengths <= length)
            | ~can_continue.any(axis=1)
        )
        self._save(has_ended, end_nodes)
        self._save(can_continue & done[:, None], nodes)
        self.finished_sources = self._sources[done].tolist()
        remaining = np.flatnonzero(~done)
        self._max_lengths, self._sources = self._max_lengths[remaining], self._sources[remaining]
        self._finished = self._finished[remaining]
        return remaining

    def _save(self, mask: NDArray[np.bool_], nodes: range) -> None:
        for row in np.flatnonzero(mask):
            self.leaves[self._sources[row // mask.shape[1]]].append(nodes[row])


def step_outcome(
    active: ActiveHypotheses, candidates: Candidates, selection: BeamSelection, remaining: Tensor
) -> StepOutcome:
    """Return what the trace of a search stores: the candidates that a step compared, the candidates
    that ended, and the candidates that the next step extends.

    remaining: indices of the sources for which the search continues
    """

    def keys(parents: Tensor, tokens: Tensor) -> list[CandidateKey]:
        return list(zip(active.rows(parents).tolist(), tokens.flatten().tolist(), strict=True))

    sources, count = candidates.tokens.shape
    indices = torch.arange(count, device=remaining.device).expand(sources, -1)
    compared = keys(indices // candidates.per_hypothesis, candidates.tokens)
    best = keys(selection.best.parents, selection.best.tokens)
    ended = selection.ended.flatten().tolist()
    exists = (selection.continuing.totals > FORBIDDEN).flatten().tolist()
    continuing: list[CandidateKey | None] = [
        key if key_exists else None
        for key, key_exists in zip(
            keys(selection.continuing.parents, selection.continuing.tokens), exists, strict=True
        )
    ]
    width = selection.continuing.totals.shape[1]
    return StepOutcome(
        compared=dict(zip(compared, candidates.log_probabilities.flatten().tolist(), strict=True)),
        ended=[key for key, key_ended in zip(best, ended, strict=True) if key_ended],
        continuing=[key for key in continuing if key is not None],
        next_rows=[
            continuing[source * width + column]
            for source in remaining.tolist()
            for column in range(width)
        ],
    )
