"""Sampling: draws every token at random from the model's distribution or a part of it."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqloom.decoding.generation import generate
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import ScoredSearch, SearchRequest, StepDecoder
from seqloom.models.interface import Memory


@dataclass(frozen=True)
class Sampling(ScoredSearch):
    """Draws each token y from p'(y) ∝ p(y)^(1 / temperature).

    Only tokens that top_k, top_p and epsilon keep can be drawn.

    temperature: below 1 favours probable tokens, above 1 flattens the distribution. Default: 1.
    top_k:       keep only the k most probable tokens. Default: 0, which keeps all.
    top_p:       keep only the smallest set of most probable tokens with this total probability
                 (after temperature, epsilon and top_k). Default: 1, which keeps all.
    epsilon:     keep only tokens with at least this probability under the model, before the
                 temperature is applied (Hewitt et al. 2022). The most probable token is always
                 kept. Default: 0, which keeps all.
    samples:     number of samples per source. Default: 1.

    The random numbers of sample j of source i depend only on the seed, i and j, not on the other
    sources in the batch. Here i is the index of the source in `SearchRequest.indices`.

    Scores are computed from log-probabilities under the model, as in every search: temperature,
    top_k, top_p and epsilon do not change them. `ScoredSearch` has the settings of the score and the
    rules.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    epsilon: float = 0.0
    samples: int = 1
    seed: int = 0

    def __call__(
        self, decoder: StepDecoder, memory: Memory, request: SearchRequest
    ) -> list[list[Hypothesis]]:
        """Return all samples of each source in the order in which they were drawn.

        Duplicates are kept, and `request.n_best` is ignored.
        """
        device = memory.mask.device
        uniforms = torch.from_numpy(self._uniforms(request)).to(device)  # (B · samples, T)

        def choose(log_probabilities: Tensor, rows: Tensor, position: int) -> Tensor:
            return self.draw(log_probabilities, uniforms[rows, position])

        return generate(
            decoder,
            memory,
            request,
            choose,
            search=self.describe(
                "sample", self.samples, initial_rows=self.samples, sampled=True, ranked=False
            ),
        )

    def _uniforms(self, request: SearchRequest) -> NDArray[np.float32]:
        """Draw a random number from [0, 1) for each sample and step: (B · samples, T)

        Each sample has its own random generator.
        """
        steps = max(request.max_lengths)
        indices = request.indices
        if indices is None:
            indices = range(len(request.max_lengths))
        generators = [
            np.random.Generator(np.random.PCG64([self.seed % 2**64, index, sample]))
            for index in indices
            for sample in range(self.samples)
        ]
        return np.stack([generator.random(steps, dtype=np.float32) for generator in generators])

    def draw(self, log_probabilities: Tensor, uniforms: Tensor) -> Tensor:
        """Draw one token per row: the first token at which the cumulative probability exceeds the
        uniform random number of the row. (R, V), (R,) -> (R,)"""
        # Subtracting the maximum before dividing keeps the softmax finite at any temperature.
        temperature = max(self.temperature, torch.finfo(log_probabilities.dtype).tiny)
        differences = log_probabilities - log_probabilities.amax(dim=1, keepdim=True)
        probabilities = (differences / temperature).softmax(dim=1)
        if self.epsilon:
            best = log_probabilities.amax(dim=1, keepdim=True)
            kept = (log_probabilities >= math.log(self.epsilon)) | (log_probabilities == best)
            probabilities = probabilities * kept
        if not self.top_k and self.top_p == 1.0:
            return sample_columns(probabilities, uniforms)
        ordered, tokens = probabilities.sort(dim=1, descending=True, stable=True)
        if self.top_k:
            ordered[:, self.top_k :] = 0
        before = ordered.cumsum(dim=1) - ordered  # probability of all more probable tokens
        ordered = ordered.masked_fill(before >= self.top_p * ordered.sum(dim=1, keepdim=True), 0)
        return tokens.gather(1, sample_columns(ordered, uniforms).unsqueeze(1)).squeeze(1)


def sample_columns(weights: Tensor, uniforms: Tensor) -> Tensor:
    """Draw one column per row with probability proportional to its weight (inverse CDF) -> (R,)

    weights:  (R, N) need not sum to 1. A column with weight 0 is never drawn
    uniforms: (R,)   random numbers from 0 to 1
    """
    sums = weights.cumsum(dim=1)
    total = sums[:, -1:].contiguous()
    column = torch.searchsorted(sums, uniforms.to(sums.dtype).unsqueeze(1) * total, right=True)
    # Rounding errors could give a column after the last one with a weight above 0. `minimum` below
    # prevents this.
    last = torch.searchsorted(sums, total)
    return torch.minimum(column, last).squeeze(1)
