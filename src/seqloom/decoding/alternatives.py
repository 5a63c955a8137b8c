"""The most probable tokens at every step of a given output."""

from collections.abc import Sequence

import torch
from torch import Tensor

from seqloom.decoding.fast.top_k import top_k
from seqloom.decoding.generation import generate
from seqloom.decoding.search import SearchRequest, StepDecoder
from seqloom.models.interface import Memory
from seqloom.text.vocabulary import END

TokenLogProbability = tuple[int, float]
"""A token and its log-probability."""


def alternatives(
    decoder: StepDecoder, memory: Memory, tokens: Sequence[int], count: int
) -> list[list[TokenLogProbability]]:
    """The `count` most probable tokens at each step of one output and after it, best first.

    p(y | y_1 ... y_{t-1}, x) for t = 1 ... T + 1, without rules. One pass over the output computes
    all steps.
    """
    target = torch.tensor([*tokens, END], device=memory.mask.device)
    steps: list[list[TokenLogProbability]] = []

    def choose(log_probabilities: Tensor, rows: Tensor, position: int) -> Tensor:
        values, likely = top_k(log_probabilities, min(count, log_probabilities.shape[1]))  # (1, C)
        steps.append(list(zip(likely[0].tolist(), values[0].tolist(), strict=True)))
        return target[position].expand(len(rows))

    generate(decoder, memory, SearchRequest(max_lengths=[len(target)]), choose)
    return steps
