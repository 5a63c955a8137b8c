"""Forcing: what a model thinks of outputs that are given."""

from collections.abc import Sequence

import torch
from torch import Tensor

from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import KeepAttention, Request, Stepper
from seqloom.decoding.walk import Walk, walk
from seqloom.models.interface import Memory
from seqloom.text.vocabulary import END, PAD


def force(
    decoder: Stepper,
    memory: Memory,
    targets: Sequence[Sequence[int]],
    keep_attention: KeepAttention | None = None,
    length_exponent: float = 1.0,
    ends: bool = True,
) -> list[Hypothesis]:
    """The given target of each source, with the model's log-probabilities of it and of its END.

    log p(y | x) = Σ_t log p(y_t | y_1 … y_{t-1}, x)

    ends: False for a model that has never seen anything end
    """
    whole = [[*target, *[END] * ends] for target in targets]
    lengths = [len(target) for target in whole]
    ended = [
        [*target, *[PAD] * (max(lengths) - n)] for target, n in zip(whole, lengths, strict=True)
    ]
    wanted = torch.tensor(ended, device=memory.mask.device)  # (B, T)

    def choose(allowed: Tensor, rows: Tensor, position: int) -> Tensor:
        return wanted[rows, position]

    request = Request(max_lengths=lengths, keep_attention=keep_attention)
    how = Walk(choose, length_exponent=length_exponent)
    return [hypothesis for [hypothesis] in walk(decoder, memory, request, how)]
