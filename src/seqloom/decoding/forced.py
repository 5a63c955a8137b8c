"""Forced decoding: computes the probability of a given output.

`alternatives` returns the tokens that are most probable at each step of that output.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from seqloom.decoding.fast.top_k import top_k
from seqloom.decoding.generation import generate
from seqloom.decoding.hypothesis import PER_TOKEN, Hypothesis, LengthNormalisation
from seqloom.decoding.search import KeepAttention, SearchRequest, StepDecoder
from seqloom.models.interface import Memory
from seqloom.text.vocabulary import END, PAD


def force(
    decoder: StepDecoder,
    memory: Memory,
    targets: Sequence[Sequence[int]],
    keep_attention: KeepAttention | None = None,
    normalisation: LengthNormalisation = PER_TOKEN,
    ends: bool = True,
) -> list[Hypothesis]:
    """Compute the log-probabilities of the tokens of given targets, and of END after each target.

    Returns one hypothesis per target.

    log p(y | x) = Σ_t log p(y_t | y_1 ... y_{t-1}, x)

    ends: whether END follows each target. Set to False for a model that was trained without END.
          Default: True.
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
    outputs = generate(decoder, memory, request, choose, normalisation=normalisation)
    return [hypothesis for [hypothesis] in outputs]


TokenLogProbability = tuple[int, float]
"""A token and its log-probability."""


def alternatives(
    decoder: StepDecoder, memory: Memory, tokens: Sequence[int], count: int
) -> list[list[TokenLogProbability]]:
    """Return the `count` most probable tokens at each position of an output, best first.

    For T tokens, the result has T + 1 positions: END follows the last token. The log-probability
    of a token at position t is conditioned on the source and on the first t - 1 tokens of the
    output. No rules are applied, so no token is forbidden.
    """
    target = torch.tensor([*tokens, END], device=memory.mask.device)
    steps: list[list[TokenLogProbability]] = []

    def choose(log_probabilities: Tensor, rows: Tensor, position: int) -> Tensor:
        values, likely = top_k(log_probabilities, min(count, log_probabilities.shape[1]))  # (1, C)
        steps.append(list(zip(likely[0].tolist(), values[0].tolist(), strict=True)))
        return target[position].expand(len(rows))

    generate(decoder, memory, SearchRequest(max_lengths=[len(target)]), choose)
    return steps
