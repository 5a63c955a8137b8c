"""Rules that forbid tokens during a search.

A forbidden token gets a log-probability of -inf. The log-probabilities of the other tokens do not
change, so that the score of a hypothesis depends only on probabilities under the model. There is
one exception: if the setting `score_prefix` is false, a token of a forced prefix has a
log-probability of 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from seqloom.config.schema.decoding import SearchRulesConfig
from seqloom.core.errors import ConfigError
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN

FORBIDDEN = float("-inf")
"""Log-probability of a token that must not be generated."""

MAX_DEFAULT_LENGTH = 256
"""Upper bound of `default_max_length`, unless the recipe sets a larger `max_length` or
`min_length`."""


class Rule(Protocol):
    """Interface of a user-defined rule that forbids tokens during a search.

    A recipe lists such rules in the setting decoding.rules.
    """

    def __call__(self, generated: Tensor, log_probabilities: Tensor) -> Tensor:
        """Return a boolean mask that is True for each token that a row must not generate next.

        The mask is (R, V), or (V,) if it is the same for all rows.

        generated:         (R, 1 + t) START and the t tokens of each row so far
        log_probabilities: (R, V)     log-probability of each token under the model. Tokens that
                                      earlier rules forbid have -inf. Do not change this tensor
        """
        ...


@dataclass(frozen=True)
class Rules:
    """Rules that forbid tokens. All searches apply them in the same way.

    - PAD and START are forbidden
    - UNKNOWN is forbidden unless `allow_unknown` is set
    - END is forbidden before `min_length` tokens
    - a token is forbidden if an n-gram of `no_repeat_ngram` tokens would occur twice; 0 disables
      this rule
    - a token is forbidden if one of `extensions` forbids it

    Two exceptions have priority:

    - a token of a forced prefix is always generated
    - if every other token is forbidden, END is allowed even before `min_length` and even if an
      extension forbids it, so that every hypothesis can end

    If `score_prefix` is False, the log-probability of a token of a forced prefix is 0.
    """

    min_length: int = 0
    no_repeat_ngram: int = 0
    allow_unknown: bool = False
    score_prefix: bool = True
    extensions: tuple[Rule, ...] = ()

    @property
    def excluded_tokens(self) -> list[int]:
        """Tokens that a search generates only if a forced prefix contains them."""
        return [PAD, START] if self.allow_unknown else [PAD, START, UNKNOWN]

    def __call__(
        self, log_probabilities: Tensor, generated: Tensor, forced: Tensor | None
    ) -> Tensor:
        """Return a copy of the log-probabilities in which every forbidden token has -inf."""
        allowed = log_probabilities.clone()
        self.forbid(allowed, generated, forced)
        return allowed

    def forbid(
        self,
        log_probabilities: Tensor,
        generated: Tensor,
        forced: Tensor | None = None,
        position: Tensor | None = None,
    ) -> None:
        """Set the log-probability of every forbidden token to -inf, in place.

        log_probabilities: (R, V)     log-probability of each token under the model
        generated:         (R, 1 + t) START and the t tokens of each row so far
        forced:            (R,)       token that each row must generate, PAD if no token is forced;
                                      None if no token is forced in any row
        position:          ()         the number t. Needed only if `generated` is a buffer with
                                      further columns for later tokens. Default: None, which means
                                      that `generated` has exactly 1 + t columns
        """
        end = log_probabilities[:, END].clone()
        forced_values = None if forced is None else log_probabilities.gather(1, forced.unsqueeze(1))
        if forced_values is not None and not self.score_prefix:
            forced_values = torch.zeros_like(forced_values)
        log_probabilities[:, PAD : START + 1].fill_(FORBIDDEN)
        if not self.allow_unknown:
            log_probabilities[:, UNKNOWN].fill_(FORBIDDEN)
        if self.no_repeat_ngram:
            forbid_repeats(log_probabilities, generated, self.no_repeat_ngram, position)
        if self.extensions:
            assert position is None, "rules outside seqloom run only in the plain searches"
            self._apply_extensions(log_probabilities, generated)
        length = generated.shape[1] - 1 if position is None else position
        self._forbid_early_end(log_probabilities, end, length)
        if forced is not None and forced_values is not None:
            log_probabilities.masked_fill_((forced != PAD).unsqueeze(1), FORBIDDEN)
            # In a row without a forced token this writes to PAD, which is forbidden already.
            free = (forced == PAD).unsqueeze(1)
            log_probabilities.scatter_(
                1, forced.unsqueeze(1), forced_values.masked_fill(free, FORBIDDEN)
            )

    def _apply_extensions(self, log_probabilities: Tensor, generated: Tensor) -> None:
        """Apply the user-defined rules, in place. If no token remains allowed, allow END again."""
        end = log_probabilities[:, END].clone()
        for rule in self.extensions:
            forbidden = rule(generated, log_probabilities.clone())
            if forbidden.dtype != torch.bool or forbidden.shape not in (
                log_probabilities.shape,
                log_probabilities.shape[1:],
            ):
                raise ConfigError(
                    f"the rule {type(rule).__name__} returns {forbidden.dtype} of the shape "
                    f"{tuple(forbidden.shape)}; it must return torch.bool of the shape "
                    f"{tuple(log_probabilities.shape)} or {tuple(log_probabilities.shape[1:])}"
                )
            log_probabilities.masked_fill_(forbidden.to(log_probabilities.device), FORBIDDEN)
        nothing_allowed = log_probabilities.amax(dim=1) == FORBIDDEN
        log_probabilities[:, END] = torch.where(nothing_allowed, end, log_probabilities[:, END])

    def _forbid_early_end(
        self, log_probabilities: Tensor, end: Tensor, length: int | Tensor
    ) -> None:
        """Forbid END before `min_length` tokens, unless every other token is forbidden.

        log_probabilities: (R, V) changed in place. The other rules have been applied already
        end:               (R,) log-probability of END before any rule was applied
        length:            number of tokens so far
        """
        if self.min_length == 0 or (isinstance(length, int) and length >= self.min_length):
            return
        if isinstance(length, int):
            log_probabilities[:, END].fill_(FORBIDDEN)
        else:
            log_probabilities[:, END] = end.masked_fill(length < self.min_length, FORBIDDEN)
        nothing_allowed = log_probabilities.amax(dim=1) == FORBIDDEN
        log_probabilities[:, END] = torch.where(nothing_allowed, end, log_probabilities[:, END])


def forbid_repeats(
    log_probabilities: Tensor, generated: Tensor, size: int, position: Tensor | None = None
) -> None:
    """Forbid, in place, each token that would repeat an n-gram of `size` tokens.

    For each earlier n-gram whose first size - 1 tokens equal the last size - 1 tokens of the row,
    the last token of that n-gram is forbidden.

    log_probabilities: (R, V)
    generated:         (R, 1 + t) START and the t tokens of each row so far
    position:          () the number t. Needed only if `generated` is a buffer with further columns
                       for later tokens; these columns are ignored. Default: None, which means that
                       `generated` has exactly 1 + t columns
    """
    if generated.shape[1] < size:
        return
    ngrams = generated.unfold(1, size, 1)  # (R, W, size)
    first = generated.shape[1] - size + 1  # column at which the last size - 1 tokens start
    if position is None:
        recent = generated[:, first:].unsqueeze(1)  # (R, 1, size - 1)
        repeated = (ngrams[..., :-1] == recent).all(dim=-1)  # (R, W)
    else:
        starts = torch.arange(first, device=generated.device)
        recent_start = position - (size - 2)
        offsets = torch.arange(size - 1, device=generated.device)
        recent = generated.index_select(1, (recent_start + offsets).clamp(min=0)).unsqueeze(1)
        repeated = (ngrams[..., :-1] == recent).all(dim=-1) & (starts < recent_start)
    # PAD means that the n-gram forbids no token: PAD itself is forbidden already.
    log_probabilities.scatter_(1, torch.where(repeated, ngrams[..., -1], PAD), FORBIDDEN)


class ForcedPrefixes:
    """The tokens that outputs must start with: one row per source, one column per position."""

    def __init__(self, prefixes: Sequence[Sequence[int]] | None, device: torch.device) -> None:
        prefixes = prefixes or []
        self._length = max(map(len, prefixes), default=0)
        rows = [[*prefix, *[PAD] * (self._length - len(prefix))] for prefix in prefixes]
        self._tokens = torch.tensor(rows, dtype=torch.long, device=device)  # (B, P)

    def at(self, position: int, sources: Callable[[], Tensor]) -> Tensor | None:
        """Return the token (R,) that each row must generate at this position.

        The token is PAD in a row whose prefix ends before this position. The result is None if all
        prefixes end before it.

        sources: function that returns the index (R,) of the source of each row. `at` calls it only
                 if a prefix reaches this position
        """
        return self._tokens[sources(), position] if position < self._length else None


def default_max_length(source_tokens: int, config: SearchRulesConfig) -> int:
    """Return the maximum number of output tokens, END included, for `source_tokens` source tokens.

    This is the recipe's `max_length` if it is set. Otherwise it is twice the source length plus 32,
    but at most 256. This default is raised if it is too small for `min_length` tokens and END.
    """
    if config.max_length is not None:
        return config.max_length
    return max(min(MAX_DEFAULT_LENGTH, 2 * source_tokens + 32), config.min_length + 1)
