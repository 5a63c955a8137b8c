"""Greedy search: the most probable token at every step."""

from dataclasses import dataclass, field

from seqloom.decoding.hypothesis import Hypothesis
from seqloom.decoding.recorder import Terms
from seqloom.decoding.rules import Rules
from seqloom.decoding.search import Request, Stepper
from seqloom.decoding.walk import Walk, walk
from seqloom.models.interface import Memory


@dataclass(frozen=True)
class Greedy:
    """y_t = argmax p(y | y_1 … y_{t-1}, source)"""

    length_exponent: float = 1.0
    rules: Rules = field(default_factory=Rules)

    def __call__(
        self, decoder: Stepper, memory: Memory, request: Request
    ) -> list[list[Hypothesis]]:
        """One hypothesis for each source: greedy search has no second best."""
        how = Walk(
            choose=lambda allowed, rows, position: allowed.argmax(dim=1),
            rules=self.rules,
            length_exponent=self.length_exponent,
            terms=Terms("greedy", 1, self.length_exponent, self.rules, ranked=False),
        )
        return walk(decoder, memory, request, how)
