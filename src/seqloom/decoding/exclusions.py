"""Forbids the tokens that a search request excludes (`SearchRequest.excluded`)."""

from collections.abc import Callable

from torch import Tensor

from seqloom.decoding.rules import FORBIDDEN
from seqloom.decoding.search import SearchRequest


class Exclusions:
    """The tokens that a search request excludes, for each of its sources.

    A search forbids these tokens before it applies its general `Rules`. If this leaves no
    token, the rules allow END, so that every hypothesis can end.
    """

    def __init__(self, request: SearchRequest) -> None:
        self._excluded = request.excluded
        self._prefix_lengths = [len(prefix) for prefix in request.all_prefixes]

    def forbid(
        self, log_probabilities: Tensor, generated: Tensor, sources: Callable[[], Tensor]
    ) -> None:
        """Set the log-probability of every excluded token to -inf, in place.

        Each row is a hypothesis. While its forced prefix is generated, no token is excluded. After
        the prefix, a token is excluded if it would complete an excluded sequence. For the first
        token after the prefix, the tokens in `ExcludedTokens.after_prefix` are excluded, too.

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
