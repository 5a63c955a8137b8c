"""Forbids the tokens that a search request excludes (`SearchRequest.excluded`)."""

from collections.abc import Callable

from torch import Tensor

from seqloom.decoding.rules import FORBIDDEN
from seqloom.decoding.search import SearchRequest


class Exclusions:
    """The excluded tokens of each source of a search request.

    A search applies them before its `Rules`. The rules allow END if every other token is
    forbidden, so each row always has an allowed token.
    """

    def __init__(self, request: SearchRequest) -> None:
        self._excluded = request.excluded
        self._prefix_lengths = [len(prefix) for prefix in request.all_prefixes]

    def forbid(
        self, log_probabilities: Tensor, generated: Tensor, sources: Callable[[], Tensor]
    ) -> None:
        """Set the log-probability of every excluded token to -inf, in place.

        Within the forced prefix, no token is excluded. After it, a token is excluded if it would
        complete one of the excluded sequences. Directly after the prefix, the tokens in
        `ExcludedTokens.after_prefix` are excluded, too.
        log_probabilities: (R, V)     log-probability of each token under the model
        generated:         (R, 1 + t) START and the t tokens of each row so far
        sources:           function that returns the index (R,) of the source of each row
        """
        if self._excluded is None:
            return
        position = generated.shape[1] - 1
        for row, source in enumerate(sources().tolist()):
            after_prefix = position - self._prefix_lengths[source]
            if after_prefix < 0:
                continue
            excluded, tokens = self._excluded[source], generated[row].tolist()
            forbidden = [
                last
                for *start, last in excluded.sequences
                if tokens[len(tokens) - len(start) :] == start
            ]
            if after_prefix == 0:
                forbidden += excluded.after_prefix
            log_probabilities[row, forbidden] = FORBIDDEN
