"""One token after another, without a way back: what greedy search, sampling and forcing share."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqloom.decoding.history import ROOT, History
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.rules import Prefixes, Rules
from seqloom.decoding.search import Request, Stepper, log_softmax
from seqloom.models.interface import Memory
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
    """

    choose: Choose
    rules: Rules | None = None
    outputs: int = 1
    length_exponent: float = 1.0


@torch.inference_mode()
def walk(decoder: Stepper, memory: Memory, request: Request, how: Walk) -> list[list[Hypothesis]]:
    """For each source its outputs, in the order of their rows."""
    size, device = memory.mask.shape[0], memory.mask.device
    request.check(size)
    prefixes = Prefixes(request.prefixes, device)
    history = History(request.keep_attention, memory.mask)
    limits = np.repeat(request.max_lengths, how.outputs)
    ledger = Ledger(limits, how.outputs)
    state = decoder.start(memory, max(request.max_lengths))
    rows = torch.arange(size * how.outputs, device=device)  # (R,)
    if how.outputs > 1:
        state = state.select(rows // how.outputs)
    written = torch.full_like(rows, START).unsqueeze(1)  # (R, 1 + t)
    nodes = torch.full_like(rows, ROOT)

    for position in range(int(limits.max())):
        step = decoder.step(written[:, -1], state)
        state = step.state
        history.look(step.attention, len(rows))
        own = log_softmax(step.logits)  # (R, V)
        allowed = own
        if how.rules is not None:
            allowed = how.rules(own, written, prefixes.at(position, rows // how.outputs))
        tokens = how.choose(allowed, rows, position)
        chosen = own.gather(1, tokens.unsqueeze(1)).squeeze(1)
        numbers = history.add(tokens, chosen, nodes, torch.arange(len(rows), device=device))
        nodes = torch.arange(numbers.start, numbers.stop, device=device)
        written = torch.cat([written, tokens.unsqueeze(1)], dim=1)
        stay = ledger.enter(tokens == END, position + 1, numbers)
        if stay is None:
            continue
        if len(stay) == 0:
            break
        kept = stay.to(device)
        sources = kept[:: how.outputs] // how.outputs
        state = state.select(kept).keep_sources(sources)
        rows, written, nodes = rows[kept], written[kept], nodes[kept]

    return [
        history.read(leaves, source, how.length_exponent)
        for source, leaves in enumerate(ledger.leaves.reshape(size, how.outputs).tolist())
    ]


class Ledger:
    """Which rows have come to their end, and in which node; kept in ordinary memory.

    Once a step the host waits for the device, here and nowhere else.
    """

    def __init__(self, limits: NDArray[np.int64], outputs: int) -> None:
        self.leaves = np.full(len(limits), ROOT)
        self._limits = limits
        self._outputs = outputs
        self._rows = np.arange(len(limits))  # those still in the batch
        self._open = np.ones(len(limits), dtype=bool)  # and of them, those not at their end

    def enter(self, ended: Tensor, length: int, nodes: range) -> Tensor | None:
        """Take note of the rows that end here -> (R',) the rows to go on with, or None for all.

        Finished rows are carried along until a quarter of the sources can leave: moving the
        state of a decoder costs about as much as a step.
        """
        over = ended.cpu().numpy() | (self._limits[self._rows] <= length)
        closing = np.flatnonzero(over & self._open)
        self.leaves[self._rows[closing]] = closing + nodes.start
        self._open[closing] = False
        sources = self._open.reshape(-1, self._outputs)
        busy = sources.any(axis=1)
        if busy.sum() > 0.75 * len(sources):
            return None
        stay = np.flatnonzero(np.repeat(busy, self._outputs))
        self._rows, self._open = self._rows[stay], self._open[stay]
        return torch.from_numpy(stay)
