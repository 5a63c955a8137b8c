"""Hypothesis: one output, with all that is known about it."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Hypothesis:
    """One output of a search.

    tokens:            what was put out, without START, and without END if it was reached
    finished:          False if the search ran out of length before END
    log_probabilities: the model's own log p of each token (and of END, if finished, as the last)
    score:             their sum divided by length^exponent; higher is better
    attention:         (T, L, H, S) where each token (and END) looked, reduced as the caller asked;
                       None if the model has no attention or nobody asked
    """

    tokens: tuple[int, ...]
    finished: bool
    log_probabilities: tuple[float, ...]
    score: float
    attention: Tensor | None

    @property
    def log_probability(self) -> float:
        return sum(self.log_probabilities)
