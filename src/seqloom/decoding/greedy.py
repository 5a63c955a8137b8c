"""Greedy search: chooses the most probable token at every step."""

from dataclasses import dataclass

from seqloom.decoding.generation import generate
from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.search import ScoredSearch, SearchRequest, StepDecoder
from seqloom.models.interface import Memory


@dataclass(frozen=True)
class Greedy(ScoredSearch):
    """Greedy search: y_t = argmax_y p(y | y_1 ... y_{t-1}, source)"""

    def __call__(
        self, decoder: StepDecoder, memory: Memory, request: SearchRequest
    ) -> list[list[Hypothesis]]:
        """Return one hypothesis per source, regardless of `request.n_best`."""
        return generate(
            decoder,
            memory,
            request,
            choose=lambda log_probabilities, rows, position: log_probabilities.argmax(dim=1),
            search=self.describe("greedy", ranked=False),
        )
