"""The tokens that a search must not generate: those of its rules and of its request."""

from collections.abc import Callable

import torch
from torch import Tensor

from seqloom.decoding.rules import FORBIDDEN, ForcedPrefixes, Rules
from seqloom.decoding.search import SearchRequest


class Constraints:
    """The rules of a search, and the prefixes and excluded tokens of a request (`SearchRequest`).

    Excluded tokens are forbidden before the rules are applied. If this leaves no token, the rules
    allow END, so that every hypothesis can end.
    """

    def __init__(self, rules: Rules, request: SearchRequest, device: torch.device) -> None:
        self._rules = rules
        self._prefixes = ForcedPrefixes(request.prefixes, device)
        self._prefix_lengths = [len(prefix) for prefix in request.all_prefixes]
        self._excluded = request.excluded

    def forbid(
        self, log_probabilities: Tensor, generated: Tensor, sources: Callable[[], Tensor]
    ) -> None:
        """Set the log-probability of every forbidden token to -inf, in place.

        Each row is a hypothesis.

        log_probabilities: (R, V)     log-probability of each token under the model
        generated:         (R, 1 + t) START and the t tokens of each row so far
        sources:           function that returns the index (R,) of the source of each row. It is
                           called only if the request has a prefix at this position or excluded tokens
        """
        self._exclude(log_probabilities, generated, sources)
        forced = self._prefixes.at(generated.shape[1] - 1, sources)
        self._rules.forbid(log_probabilities, generated, forced)

    def _exclude(
        self, log_probabilities: Tensor, generated: Tensor, sources: Callable[[], Tensor]
    ) -> None:
        """Forbid the excluded tokens.

        While the forced prefix of a row is generated, no token is excluded. After the prefix, a token
        is excluded if it would complete an excluded sequence. For the first token after the prefix,
        the tokens in `ExcludedTokens.after_prefix` are excluded, too.
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
