"""One token after another, without a way back: what greedy search, sampling and forcing share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from seqloom.decoding.history import ROOT, History
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.recorder import Outcome, Terms
from seqloom.decoding.rules import Prefixes, Rules
from seqloom.decoding.search import Request, Stepper, log_softmax
from seqloom.models.interface import Memory, State
from seqloom.text.vocabulary import END, START

Choose = Callable[[Tensor, Tensor, int], Tensor]
"""(R, V) log-probabilities of what is allowed, (R,) numbers of the rows, position -> (R,) tokens.

A row keeps its number from the first step to the last: output j of source i is i · outputs + j.
"""


@dataclass(frozen=True)
class Walk:
    """How to walk.

    choose:  picks the next token of every row
    rules:   what may be picked; None: anything
    outputs: rows for each source
    terms:   what a recorder is told; None: there is no choice to record
    """

    choose: Choose
    rules: Rules | None = None
    outputs: int = 1
    length_exponent: float = 1.0
    terms: Terms | None = None


@dataclass(frozen=True)
class Rows:
    """The outputs that are being written; those of one source stand together.

    numbers: (R,)       which rows of the first step these are
    written: (R, 1 + t) START and the tokens so far
    nodes:   (R,)       the node of the last token in the history
    """

    numbers: Tensor
    written: Tensor
    nodes: Tensor
    state: State

    @classmethod
    def at_start(cls, decoder: Stepper, memory: Memory, request: Request, outputs: int) -> "Rows":
        """As many empty outputs for each source."""
        numbers = torch.arange(memory.mask.shape[0] * outputs, device=memory.mask.device)
        state = decoder.start(
            memory, max(request.max_lengths), need_attention=request.keep_attention is not None
        )
        return cls(
            numbers=numbers,
            written=torch.full_like(numbers, START).unsqueeze(1),
            nodes=torch.full_like(numbers, ROOT),
            state=state if outputs == 1 else state.select(numbers // outputs),
        )

    def sources(self, outputs: int) -> Tensor:
        """(R,) the source of each row."""
        return self.numbers // outputs

    def keep(self, rows: Tensor, outputs: int) -> "Rows":
        """Only these rows (R',): all of some sources."""
        sources = rows[::outputs] // outputs
        return Rows(
            numbers=self.numbers[rows],
            written=self.written[rows],
            nodes=self.nodes[rows],
            state=self.state.select(rows).keep_sources(sources),
        )


@torch.inference_mode()
def walk(decoder: Stepper, memory: Memory, request: Request, how: Walk) -> list[list[Hypothesis]]:
    """For each source its outputs, in the order of their rows."""
    size, device = memory.mask.shape[0], memory.mask.device
    request.check(size)
    prefixes = Prefixes(request.prefixes, device)
    history = History(request.keep_attention, memory.mask)
    ledger = Ledger(request.max_lengths, how.outputs)
    rows = Rows.at_start(decoder, memory, request, how.outputs)
    recorder = request.recorder
    if recorder is not None:
        assert how.terms is not None, "what is forced cannot be recorded"
        recorder.begin(request, how.terms)

    for position in range(max(request.max_lengths)):
        step = decoder.step(rows.written[:, -1], rows.state)
        history.look(step.attention, len(rows.numbers))
        allowed = log_softmax(step.logits)  # (R, V)
        if recorder is not None:
            recorder.see(allowed)
        if how.rules is not None:
            forced = prefixes.at(position, partial(rows.sources, how.outputs))
            how.rules.forbid(allowed, rows.written, forced)
        tokens = how.choose(allowed, rows.numbers, position)

        here = torch.arange(len(tokens), device=device)
        # What is allowed has the model's own log-probability.
        chosen = allowed.gather(1, tokens.unsqueeze(1)).squeeze(1)
        nodes = history.add(tokens, chosen, rows.nodes, here)
        written = torch.cat([rows.written, tokens.unsqueeze(1)], dim=1)
        rows = Rows(rows.numbers, written, here + nodes.start, step.state)
        stay = ledger.enter(tokens == END, position + 1, nodes)
        if recorder is not None:
            recorder.take(noted(tokens, chosen, stay, ledger.open))
        if len(stay) == 0:
            break
        if len(stay) < len(tokens):
            rows = rows.keep(stay.to(device), how.outputs)

    return [
        history.read(leaves, source, how.length_exponent)
        for source, leaves in enumerate(ledger.leaves.reshape(size, how.outputs).tolist())
    ]


def noted(tokens: Tensor, chosen: Tensor, stay: Tensor, unfinished: list[bool]) -> Outcome:
    """What a step decided, for a recorder. tokens (R,), chosen (R,), stay (R',)"""
    keys = list(enumerate(tokens.tolist()))
    further = zip(stay.tolist(), unfinished, strict=True)
    return Outcome(
        compared=dict(zip(keys, chosen.tolist(), strict=True)),
        ended=[key for key in keys if key[1] == END],
        going=[key for key in keys if key[1] != END],
        rows=[keys[row] if goes_on else None for row, goes_on in further],
    )


class Ledger:
    """Which rows have come to their end, and in which node; kept in ordinary memory.

    Once a step the host waits for the device, here and nowhere else.
    """

    def __init__(self, max_lengths: Sequence[int], outputs: int) -> None:
        self._limits = np.repeat(max_lengths, outputs)
        self.leaves = np.full(len(self._limits), ROOT)
        self._outputs = outputs
        self._rows = np.arange(len(self._limits))  # those still in the batch
        self._open = np.ones(len(self._limits), dtype=bool)  # and of them, those not at their end

    @property
    def open(self) -> list[bool]:
        """For each row that is still in the batch: has it not come to its end?"""
        return self._open.tolist()

    def enter(self, ended: Tensor, length: int, nodes: range) -> Tensor:
        """Take note of the rows that end here -> (R',) the rows to go on with.

        Finished rows are carried along until a quarter of the sources can leave: to move the
        state of a decoder is to copy it.
        """
        over = ended.cpu().numpy() | (self._limits[self._rows] <= length)
        closing = np.flatnonzero(over & self._open)
        self.leaves[self._rows[closing]] = closing + nodes.start
        self._open[closing] = False
        busy = np.logical_or.reduce(self._open.reshape(-1, self._outputs), axis=1)
        few_leave = np.count_nonzero(busy) > 0.75 * len(busy)
        stay = np.flatnonzero(np.repeat(busy | few_leave, self._outputs))
        self._rows, self._open = self._rows[stay], self._open[stay]
        return torch.from_numpy(stay)
