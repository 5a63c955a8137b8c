"""What else a model would have said: the likeliest tokens at every step of a given output."""

from collections.abc import Sequence

import torch
from torch import Tensor

from seqloom.decoding.search import Request, Stepper
from seqloom.decoding.top import top
from seqloom.decoding.walk import Walk, walk
from seqloom.models.interface import Memory
from seqloom.text.vocabulary import END

Choice = tuple[int, float]
"""A token and its log-probability."""


def alternatives(
    decoder: Stepper, memory: Memory, tokens: Sequence[int], count: int
) -> list[list[Choice]]:
    """For each token of one output, and for what follows it, the likeliest tokens, best first.

    p(y | y_1 … y_{t-1}, x) for t = 1 … T + 1: the model's own, before any rule. One pass over the
    output is enough for all of its steps.
    """
    given = torch.tensor([*tokens, END], device=memory.mask.device)
    found: list[list[Choice]] = []

    def choose(allowed: Tensor, rows: Tensor, position: int) -> Tensor:
        values, likely = top(allowed, min(count, allowed.shape[1]))  # (1, C)
        found.append(list(zip(likely[0].tolist(), values[0].tolist(), strict=True)))
        return given[position].expand(len(rows))

    walk(decoder, memory, Request(max_lengths=[len(given)]), Walk(choose))
    return found
