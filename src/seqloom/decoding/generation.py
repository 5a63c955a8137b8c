"""Generates outputs token by token without comparing alternatives.

Greedy search, sampling and forced decoding all call `generate`. They differ only in the function
that chooses the next token.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqloom.decoding.constraints import Constraints
from seqloom.decoding.hypothesis import PER_TOKEN, Hypothesis, LengthNormalisation
from seqloom.decoding.search import SearchRequest, StepDecoder, log_softmax
from seqloom.decoding.token_tree import ROOT, TokenTree
from seqloom.decoding.tracer import SearchDescription, StepOutcome
from seqloom.models.interface import Memory, State
from seqloom.text.vocabulary import END, START

ChooseTokens = Callable[[Tensor, Tensor, int], Tensor]
"""Chooses the next token of each row.

(log-probabilities (R, V), -inf if forbidden; row indices (R,); position) -> tokens (R,)

A row keeps its index from the first step to the last: output j of source i has index
i · outputs_per_source + j. The position is the number of tokens generated so far.
"""


def generate(
    decoder: StepDecoder,
    memory: Memory,
    request: SearchRequest,
    choose: ChooseTokens,
    *,
    search: SearchDescription | None = None,
    normalisation: LengthNormalisation = PER_TOKEN,
) -> list[list[Hypothesis]]:
    """Generate `search.initial_rows` outputs for each source. Return them grouped by source.

    choose:        function that chooses the next token of every output
    search:        the rules and the length normalisation of the search, and what a tracer records.
                   Default: None, for forced decoding: one output per source, and all tokens are allowed
    normalisation: length normalisation of forced decoding. Default: `PER_TOKEN`
    """
    with torch.inference_mode():
        sources, device = memory.mask.shape[0], memory.mask.device
        request.check(sources)
        constraints, outputs_per_source, tracer = None, 1, request.tracer
        if search is not None:
            constraints = Constraints(search.rules, request, device)
            outputs_per_source, normalisation = search.initial_rows, search.normalisation
            request.start_trace(search)
        else:
            assert request.prefixes is None, "prefixes need the rules of a search"
            assert request.excluded is None, "excluded tokens need the rules of a search"
            assert tracer is None, "forced decoding cannot be traced"
        tree = TokenTree(request.keep_attention, memory.mask)
        tracker = RowTracker(request.max_lengths, outputs_per_source)
        rows = OutputRows.start(decoder, memory, request, outputs_per_source)

        def hypotheses_of(source: int) -> list[Hypothesis]:
            rows = slice(source * outputs_per_source, (source + 1) * outputs_per_source)
            return tree.hypotheses(tracker.leaves[rows].tolist(), source, normalisation)

        results: dict[int, list[Hypothesis]] = {}
        for position in range(max(request.max_lengths)):
            step = decoder.step(rows.generated[:, -1], rows.state)
            tree.begin_step(step.attention, len(rows.indices))
            log_probabilities = log_softmax(step.logits)  # (R, V)
            if tracer is not None:
                tracer.observe_log_probabilities(log_probabilities)
            if constraints is not None:
                row_sources = partial(rows.sources, outputs_per_source)
                constraints.forbid(log_probabilities, rows.generated, row_sources)
            tokens = choose(log_probabilities, rows.indices, position)

            all_rows = torch.arange(len(tokens), device=device)
            chosen = log_probabilities.gather(1, tokens.unsqueeze(1)).squeeze(1)
            nodes = tree.add(tokens, chosen, rows.nodes, all_rows)
            generated = torch.cat([rows.generated, tokens.unsqueeze(1)], dim=1)
            rows = OutputRows(rows.indices, generated, all_rows + nodes.start, step.state)
            remaining = tracker.update(tokens == END, position + 1, nodes)
            if request.on_finished is not None:
                for source in tracker.finished_sources:
                    results[source] = hypotheses_of(source)
                    request.on_finished(source, results[source])
            if tracer is not None:
                tracer.observe_outcome(step_outcome(tokens, chosen, remaining, tracker.unfinished))
            if len(remaining) == 0:
                break
            if len(remaining) < len(tokens):
                rows = rows.keep(remaining.to(device), outputs_per_source)

        return [
            results[source] if source in results else hypotheses_of(source)
            for source in range(sources)
        ]


@dataclass(frozen=True)
class OutputRows:
    """The outputs under construction, one per row. The rows of one source are adjacent.

    From time to time, the search drops the rows of finished sources.

    indices:   (R,)       index that each row had in the first step, before rows were dropped
    generated: (R, 1 + t) START and the tokens so far
    nodes:     (R,)       index of each row's last token in the `TokenTree`, which stores all tokens
    state:     decoder state
    """

    indices: Tensor
    generated: Tensor
    nodes: Tensor
    state: State

    @classmethod
    def start(
        cls, decoder: StepDecoder, memory: Memory, request: SearchRequest, outputs_per_source: int
    ) -> "OutputRows":
        """Return `outputs_per_source` empty outputs for each source, before the first step."""
        indices = torch.arange(memory.mask.shape[0] * outputs_per_source, device=memory.mask.device)
        state = decoder.start(
            memory, max(request.max_lengths), need_attention=request.keep_attention is not None
        )
        return cls(
            indices=indices,
            generated=torch.full_like(indices, START).unsqueeze(1),
            nodes=torch.full_like(indices, ROOT),
            state=state if outputs_per_source == 1 else state.select(indices // outputs_per_source),
        )

    def sources(self, outputs_per_source: int) -> Tensor:
        """Return the index of the source of each row (output): (R,)"""
        return self.indices // outputs_per_source

    def keep(self, rows: Tensor, outputs_per_source: int) -> "OutputRows":
        """Return a copy that contains only the given rows (outputs).

        rows: (R',) indices of the rows to keep. They must contain all rows of a source, or none of
              them
        """
        sources = rows[::outputs_per_source] // outputs_per_source
        return OutputRows(
            indices=self.indices[rows],
            generated=self.generated[rows],
            nodes=self.nodes[rows],
            state=self.state.select(rows).keep_sources(sources),
        )


class RowTracker:
    """Tracks on the host which rows (outputs) have ended.

    A row ends when it generates END or reaches its maximum length.

    leaves:           index of each row's last token in the `TokenTree`, which stores all tokens;
                      ROOT (-1) if the row has not ended. Rows that were dropped from the batch are
                      included
    finished_sources: indices of the sources of which the last row has ended in the newest step

    The host waits for the device only in `update`, once per step.
    """

    def __init__(self, max_lengths: Sequence[int], outputs_per_source: int) -> None:
        self._max_lengths = np.repeat(max_lengths, outputs_per_source)
        self.leaves = np.full(len(self._max_lengths), ROOT)
        self._outputs_per_source = outputs_per_source
        self._rows = np.arange(len(self._max_lengths))  # rows still in the batch
        self._unfinished = np.ones(len(self._max_lengths), dtype=bool)  # for each of `_rows`
        self.finished_sources: list[int] = []

    @property
    def unfinished(self) -> list[bool]:
        """For each row that is still in the batch: True if it has not ended."""
        return self._unfinished.tolist()

    def update(self, ended: Tensor, length: int, nodes: range) -> Tensor:
        """Record which rows end in this step. Return the indices (R',) of the rows to keep.

        A source is finished when all its rows have ended. Dropping rows copies the decoder state,
        so finished sources stay in the batch until they make up at least a quarter of it.

        ended:  (R,) True for rows that have generated END in this step
        length: number of tokens generated so far, including this step
        nodes:  indices of the tokens of this step in the `TokenTree`, which stores all tokens
        """
        over = ended.cpu().numpy() | (self._max_lengths[self._rows] <= length)
        was_busy = self._busy_sources()
        closing = np.flatnonzero(over & self._unfinished)
        self.leaves[self._rows[closing]] = closing + nodes.start
        self._unfinished[closing] = False
        busy = self._busy_sources()
        sources = self._rows[:: self._outputs_per_source] // self._outputs_per_source
        self.finished_sources = sources[was_busy & ~busy].tolist()
        keep_all = np.count_nonzero(busy) > 0.75 * len(busy)
        remaining = np.flatnonzero(np.repeat(busy | keep_all, self._outputs_per_source))
        self._rows, self._unfinished = self._rows[remaining], self._unfinished[remaining]
        return torch.from_numpy(remaining)

    def _busy_sources(self) -> NDArray[np.bool_]:
        """For each source that is still in the batch: True if one of its rows has not ended."""
        return np.logical_or.reduce(self._unfinished.reshape(-1, self._outputs_per_source), axis=1)


def step_outcome(
    tokens: Tensor, chosen: Tensor, remaining: Tensor, unfinished: Sequence[bool]
) -> StepOutcome:
    """Return which tokens a step chose and which outputs it ended, for the trace of the search.

    tokens:     (R,)  chosen token of each row
    chosen:     (R,)  log-probability of each chosen token
    remaining:  (R',) indices of the rows that stay in the batch
    unfinished: for each of these R' rows, True if it has not ended
    """
    keys = list(enumerate(tokens.tolist()))
    return StepOutcome(
        compared=dict(zip(keys, chosen.tolist(), strict=True)),
        ended=[key for key in keys if key[1] == END],
        continuing=[key for key in keys if key[1] != END],
        next_rows=[
            keys[row] if row_continues else None
            for row, row_continues in zip(remaining.tolist(), unfinished, strict=True)
        ],
    )


def roll_out(
    decoder: StepDecoder,
    memory: Memory,
    first: Tensor,
    context: Tensor,
    targets: Tensor | None = None,
    target_share: float = 0.0,
) -> Tensor:
    """Generate the vectors y_1 ... y_T with y_t = f(y_{t-1}, c_t, source) -> (B, T, D)

    f is a step of the decoder. Its input is the concatenation of y_{t-1} and c_t. Gradients flow
    back through the generated vectors.

    first:        (B, D)    y_0, the vector before the first output
    context:      (B, T, C) c_1 ... c_T, values that are known in advance and not predicted
    targets:      (B, T, D) the true vectors. Default: None. Used only if `target_share` > 0
    target_share: probability, at each position, that y_{t-1} is the true vector and not the
                  generated one (scheduled sampling, Bengio et al. 2015). Default: 0
    """
    state = decoder.start(memory, context.shape[1], need_attention=False)
    row = first
    rows: list[Tensor] = []
    for position, step_context in enumerate(context.unbind(1)):
        if position and targets is not None and target_share > 0:
            use_target = torch.rand(len(row), 1, device=row.device) < target_share
            row = torch.where(use_target, targets[:, position - 1], row)
        step = decoder.step(torch.cat([row, step_context], dim=-1), state)
        row, state = step.logits, step.state
        rows.append(row)
    return torch.stack(rows, dim=1)
