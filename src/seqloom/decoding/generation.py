"""Generates outputs token by token without comparing alternatives.

Greedy search, sampling and forced decoding share this loop and differ in how they choose a token.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.rules import ForcedPrefixes, Rules
from seqloom.decoding.search import SearchRequest, StepDecoder, log_softmax
from seqloom.decoding.token_tree import ROOT, TokenTree
from seqloom.decoding.tracer import SearchDescription, StepOutcome
from seqloom.models.interface import Memory, State
from seqloom.text.vocabulary import END, START

ChooseTokens = Callable[[Tensor, Tensor, int], Tensor]
"""Log-probabilities (R, V), -inf if forbidden; indices of the rows (R,); position -> tokens (R,)

A row keeps its index from the first step to the last: output j of source i has index
i · outputs_per_source + j.
"""


@torch.inference_mode()
def generate(
    decoder: StepDecoder,
    memory: Memory,
    request: SearchRequest,
    choose: ChooseTokens,
    *,
    rules: Rules | None = None,
    outputs_per_source: int = 1,
    length_penalty: float = 1.0,
    description: SearchDescription | None = None,
) -> list[list[Hypothesis]]:
    """The outputs of each source, in the order of their rows.

    choose:      chooses the next token of every row
    rules:       tokens that may be chosen. Default: None, which allows every token
    description: for `request.tracer`; None if the outputs are given and there is nothing to trace
    """
    sources, device = memory.mask.shape[0], memory.mask.device
    request.check(sources)
    prefixes = ForcedPrefixes(request.prefixes, device)
    tree = TokenTree(request.keep_attention, memory.mask)
    tracker = RowTracker(request.max_lengths, outputs_per_source)
    rows = OutputRows.start(decoder, memory, request, outputs_per_source)
    tracer = request.tracer
    if tracer is not None:
        assert description is not None, "forced decoding cannot be traced"
        tracer.start_search(description, request.n_best, request.all_prefixes)

    for position in range(max(request.max_lengths)):
        step = decoder.step(rows.generated[:, -1], rows.state)
        tree.begin_step(step.attention, len(rows.indices))
        log_probabilities = log_softmax(step.logits)  # (R, V)
        if tracer is not None:
            tracer.observe_log_probabilities(log_probabilities)
        if rules is not None:
            forced = prefixes.at(position, partial(rows.sources, outputs_per_source))
            rules.forbid(log_probabilities, rows.generated, forced)
        tokens = choose(log_probabilities, rows.indices, position)

        all_rows = torch.arange(len(tokens), device=device)
        chosen = log_probabilities.gather(1, tokens.unsqueeze(1)).squeeze(1)
        nodes = tree.add(tokens, chosen, rows.nodes, all_rows)
        generated = torch.cat([rows.generated, tokens.unsqueeze(1)], dim=1)
        rows = OutputRows(rows.indices, generated, all_rows + nodes.start, step.state)
        remaining = tracker.update(tokens == END, position + 1, nodes)
        if tracer is not None:
            tracer.observe_outcome(step_outcome(tokens, chosen, remaining, tracker.unfinished))
        if len(remaining) == 0:
            break
        if len(remaining) < len(tokens):
            rows = rows.keep(remaining.to(device), outputs_per_source)

    return [
        tree.hypotheses(leaves, source, length_penalty)
        for source, leaves in enumerate(
            tracker.leaves.reshape(sources, outputs_per_source).tolist()
        )
    ]


@dataclass(frozen=True)
class OutputRows:
    """The outputs under construction; the rows of one source are adjacent.

    indices:   (R,)       indices of these rows in the first step
    generated: (R, 1 + t) START and the tokens so far
    nodes:     (R,)       node of the last token in the tree
    """

    indices: Tensor
    generated: Tensor
    nodes: Tensor
    state: State

    @classmethod
    def start(
        cls, decoder: StepDecoder, memory: Memory, request: SearchRequest, outputs_per_source: int
    ) -> "OutputRows":
        """`outputs_per_source` empty outputs for each source."""
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
        """(R,) source of each row"""
        return self.indices // outputs_per_source

    def keep(self, rows: Tensor, outputs_per_source: int) -> "OutputRows":
        """Keep only these rows (R',), which are all rows of some sources."""
        sources = rows[::outputs_per_source] // outputs_per_source
        return OutputRows(
            indices=self.indices[rows],
            generated=self.generated[rows],
            nodes=self.nodes[rows],
            state=self.state.select(rows).keep_sources(sources),
        )


class RowTracker:
    """Tracks, on the host, which rows have ended, and in which node of the tree.

    The host waits for the device only in `update`, once per step.
    """

    def __init__(self, max_lengths: Sequence[int], outputs_per_source: int) -> None:
        self._max_lengths = np.repeat(max_lengths, outputs_per_source)
        self.leaves = np.full(len(self._max_lengths), ROOT)
        self._outputs_per_source = outputs_per_source
        self._rows = np.arange(len(self._max_lengths))  # rows that are still in the batch
        self._unfinished = np.ones(len(self._max_lengths), dtype=bool)  # one value for each of them

    @property
    def unfinished(self) -> list[bool]:
        """For each row that is still in the batch: True if it has not ended."""
        return self._unfinished.tolist()

    def update(self, ended: Tensor, length: int, nodes: range) -> Tensor:
        """Record the rows that end in this step. Returns the rows (R',) to continue with.

        Finished rows stay in the batch until a quarter of the sources can be dropped, because
        dropping rows copies the decoder state.
        """
        over = ended.cpu().numpy() | (self._max_lengths[self._rows] <= length)
        closing = np.flatnonzero(over & self._unfinished)
        self.leaves[self._rows[closing]] = closing + nodes.start
        self._unfinished[closing] = False
        busy = np.logical_or.reduce(self._unfinished.reshape(-1, self._outputs_per_source), axis=1)
        keep_all = np.count_nonzero(busy) > 0.75 * len(busy)
        remaining = np.flatnonzero(np.repeat(busy | keep_all, self._outputs_per_source))
        self._rows, self._unfinished = self._rows[remaining], self._unfinished[remaining]
        return torch.from_numpy(remaining)


def step_outcome(
    tokens: Tensor, chosen: Tensor, remaining: Tensor, unfinished: Sequence[bool]
) -> StepOutcome:
    """The decisions of a step, for a tracer.

    tokens (R,), chosen (R,) their log-probabilities, remaining (R',) rows of the next step
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


def roll_out(decoder: StepDecoder, memory: Memory, first: Tensor, context: Tensor) -> Tensor:
    """y_t = f(y_{t-1}, c_t, source)

    first (B, D): the row before the first output; context (B, T, C) -> outputs (B, T, D)
    """
    state = decoder.start(memory, context.shape[1], need_attention=False)
    row = first
    rows = []
    for step_context in context.unbind(1):
        step = decoder.step(torch.cat([row, step_context], dim=-1), state)
        row, state = step.logits, step.state
        rows.append(row)
    return torch.stack(rows, dim=1)
