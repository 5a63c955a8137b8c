"""Forced decoding: the probabilities of given outputs under a model."""

from collections.abc import Sequence

import torch
from torch import Tensor

from seqloom.decoding.generation import generate
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import KeepAttention, SearchRequest, StepDecoder
from seqloom.models.interface import Memory
from seqloom.text.vocabulary import END, PAD


def force(
    decoder: StepDecoder,
    memory: Memory,
    targets: Sequence[Sequence[int]],
    keep_attention: KeepAttention | None = None,
    length_penalty: float = 1.0,
    ends: bool = True,
) -> list[Hypothesis]:
    """One hypothesis per source: its target, with the log-probabilities of its tokens and of END.

    log p(y | x) = Σ_t log p(y_t | y_1 ... y_{t-1}, x)

    ends: whether END follows each target. False for a model that was trained without END.
    """
    sequences = [[*target, *[END] * ends] for target in targets]
    lengths = [len(sequence) for sequence in sequences]
    padded = [
        [*sequence, *[PAD] * (max(lengths) - length)]
        for sequence, length in zip(sequences, lengths, strict=True)
    ]
    tokens = torch.tensor(padded, device=memory.mask.device)  # (B, T)

    def choose(log_probabilities: Tensor, rows: Tensor, position: int) -> Tensor:
        return tokens[rows, position]

    request = SearchRequest(max_lengths=lengths, keep_attention=keep_attention)
    outputs = generate(decoder, memory, request, choose, length_penalty=length_penalty)
    return [hypothesis for [hypothesis] in outputs]
