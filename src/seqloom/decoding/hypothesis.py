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
    attention:         (T, ..., S) attention weights of each token, including END if finished, as
                       reduced by `SearchRequest.keep_attention`. None if the request keeps no
                       attention or the model has no attention
    """

    tokens: tuple[int, ...]
    finished: bool
    log_probabilities: tuple[float, ...]
    score: float
    attention: Tensor | None

    @property
    def log_probability(self) -> float:
        return sum(self.log_probabilities)


@overload
def normalise_by_length(log_probability: float, length: int, length_penalty: float) -> float: ...
@overload
def normalise_by_length(
    log_probability: NDArray[Any], length: NDArray[Any], length_penalty: float
) -> NDArray[Any]: ...
def normalise_by_length(log_probability: Any, length: Any, length_penalty: float) -> Any:
    """score = log p / length^length_penalty

    Every additional token lowers log p. Without normalisation, short outputs would therefore win.
    """
    return log_probability / length**length_penalty
