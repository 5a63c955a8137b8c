"""Greedy search: chooses the most probable token at every step."""

from dataclasses import dataclass, field

from seqloom.decoding.generation import generate
from seqloom.decoding.hypothesis import Hypothesis, LengthNormalisation
from seqloom.decoding.rules import Rules
from seqloom.decoding.search import SearchRequest, StepDecoder
from seqloom.decoding.tracer import SearchDescription
from seqloom.models.interface import Memory


@dataclass(frozen=True)
class Greedy:
    """Greedy search: y_t = argmax_y p(y | y_1 ... y_{t-1}, source)

    length_penalty:    exponent a of the score log p / length^a. Default: 1
    rules:             rules that forbid tokens
    length_counts_end: if True, END counts in the length. Default: False
    """

    length_penalty: float = 1.0
    rules: Rules = field(default_factory=Rules)
    length_counts_end: bool = False

    @property
    def normalisation(self) -> LengthNormalisation:
        return LengthNormalisation(self.length_penalty, self.length_counts_end)

    def __call__(
        self, decoder: StepDecoder, memory: Memory, request: SearchRequest
    ) -> list[list[Hypothesis]]:
        """Return one hypothesis per source, regardless of `request.n_best`."""
        return generate(
            decoder,
            memory,
            request,
            choose=lambda log_probabilities, rows, position: log_probabilities.argmax(dim=1),
            rules=self.rules,
            normalisation=self.normalisation,
            description=SearchDescription(
                kind="greedy",
                width=1,
                normalisation=self.normalisation,
                rules=self.rules,
                ranked=False,
            ),
        )
