"""Hypothesis: one output of a search, with its probabilities and its score."""

from dataclasses import dataclass
from typing import Any, overload

from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class Hypothesis:
    """One output of a search.

    tokens:            generated tokens, without START and END
    finished:          False if the search reached the length limit before END
    log_probabilities: log p of each token under the model, including END if finished
    score:             sum of `log_probabilities`, normalised by length; higher is better
    attention:         (T, ..., S) attention weights of T tokens, including END if finished, over S
                       source positions. The search request determines the dimensions between T
                       and S. None if attention was not requested or the model has none
    """

    tokens: tuple[int, ...]
    finished: bool
    log_probabilities: tuple[float, ...]
    score: float
    attention: Tensor | None

    @property
    def log_probability(self) -> float:
        return sum(self.log_probabilities)


@dataclass(frozen=True)
class LengthNormalisation:
    """score = log p / length^penalty

    Every additional token lowers log p. Without normalisation, short outputs would therefore win.

    penalty:    0 gives log p, 1 gives the mean log p per token. Default: 1.
    counts_end: whether END counts as a token of a finished output. log p includes the probability
                of END in both cases. If END does not count, the empty output has length 1, not 0.
                Default: False.
    """

    penalty: float = 1.0
    counts_end: bool = False

    @overload
    def score(self, log_probability: float, steps: int, finished: bool) -> float: ...
    @overload
    def score(
        self, log_probability: NDArray[Any], steps: NDArray[Any], finished: NDArray[Any]
    ) -> NDArray[Any]: ...
    @overload
    def score(self, log_probability: Tensor, steps: int | Tensor, finished: bool) -> Tensor: ...
    def score(self, log_probability: Any, steps: Any, finished: Any) -> Any:
        """Return the score of one output. With arrays or tensors, return the score of each output.

        steps:    number of generated tokens, END included
        finished: True if the last of these tokens is END
        """
        # 1 * finished: torch does not subtract a bool from a tensor.
        length = steps if self.counts_end else steps - 1 * finished
        return log_probability / (length + (length == 0)) ** self.penalty


PER_TOKEN = LengthNormalisation()
"""The default: the mean log p per token, where END is not counted."""
