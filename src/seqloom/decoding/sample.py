"""Sampling: every token drawn from the model's distribution, or from its likelier part."""

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.recorder import Terms
from seqloom.decoding.rules import Rules
from seqloom.decoding.search import Request, Stepper
from seqloom.decoding.walk import Walk, walk
from seqloom.models.interface import Memory


@dataclass(frozen=True)
class Sample:
    """p'(y) ∝ p(y)^(1 / temperature), over the tokens that top_k, top_p and epsilon leave.

    epsilon looks at the model's own p(y), before the temperature (Hewitt et al. 2022); the most
    probable token always stays.

    Sample j of source i depends on the seed, on i and on j, and on nothing else in the batch.
    Scores are the model's own, as in every search: neither the temperature nor the choice of
    likely tokens changes them.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    epsilon: float = 0.0
    samples: int = 1
    seed: int = 0
    length_exponent: float = 1.0
    rules: Rules = field(default_factory=Rules)

    def __call__(
        self, decoder: Stepper, memory: Memory, request: Request
    ) -> list[list[Hypothesis]]:
        """For each source all its samples in the order drawn, equal ones included."""
        device = memory.mask.device
        uniforms = torch.from_numpy(self._uniforms(request)).to(device)  # (B · samples, T)

        def choose(allowed: Tensor, rows: Tensor, position: int) -> Tensor:
            return self.draw(allowed, uniforms[rows, position])

        terms = Terms(
            "sample",
            self.samples,
            self.length_exponent,
            self.rules,
            rows=self.samples,
            drawn=True,
            ranked=False,
        )
        how = Walk(choose, self.rules, self.samples, self.length_exponent, terms)
        return walk(decoder, memory, request, how)

    def _uniforms(self, request: Request) -> NDArray[np.float32]:
        """(B · samples, T) between 0 and 1: a stream of numbers for each sample."""
        steps = max(request.max_lengths)
        everyone = range(len(request.max_lengths))
        indices = everyone if request.indices is None else request.indices
        streams = [
            np.random.Generator(np.random.PCG64([self.seed % 2**64, index, sample]))
            for index in indices
            for sample in range(self.samples)
        ]
        return np.stack([stream.random(steps, dtype=np.float32) for stream in streams])

    def draw(self, allowed: Tensor, uniforms: Tensor) -> Tensor:
        """The token at which the cumulative probability first exceeds u. (R, V), (R,) -> (R,)"""
        # To temper only what a token lacks to the best keeps the softmax finite at any temperature.
        temperature = max(self.temperature, torch.finfo(allowed.dtype).tiny)
        tempered = (allowed - allowed.amax(dim=1, keepdim=True)) / temperature
        probabilities = tempered.softmax(dim=1)
        if self.epsilon:
            best = allowed.amax(dim=1, keepdim=True)
            likely_enough = (allowed >= math.log(self.epsilon)) | (allowed == best)
            probabilities = probabilities * likely_enough
        if not self.top_k and self.top_p == 1.0:
            return invert(probabilities, uniforms)
        likely, tokens = probabilities.sort(dim=1, descending=True, stable=True)
        if self.top_k:
            likely[:, self.top_k :] = 0
        before = likely.cumsum(dim=1) - likely  # the share of all that are likelier
        likely = likely.masked_fill(before >= self.top_p * likely.sum(dim=1, keepdim=True), 0)
        return tokens.gather(1, invert(likely, uniforms).unsqueeze(1)).squeeze(1)


def invert(weights: Tensor, uniforms: Tensor) -> Tensor:
    """The first column at which the sum of weights exceeds u times their total.

    weights (R, N) need not sum to one; a column without weight is never chosen.
    """
    sums = weights.cumsum(dim=1)
    total = sums[:, -1:].contiguous()
    column = torch.searchsorted(sums, uniforms.to(sums.dtype).unsqueeze(1) * total, right=True)
    last = torch.searchsorted(sums, total)  # rounding must not lead past the last with a weight
    return torch.minimum(column, last).squeeze(1)
