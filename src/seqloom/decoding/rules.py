"""Rules: the tokens that a search must not generate.

A rule sets log-probabilities to -inf and never renormalises the others, so that the score of a
hypothesis is always the model's own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seqloom.config.schema.decoding import SearchRulesConfig
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN

FORBIDDEN = float("-inf")
"""Log-probability of a token that must not be generated."""

MAX_DEFAULT_LENGTH = 256
"""Upper bound of `default_max_length` if the recipe sets no `max_length`."""


@dataclass(frozen=True)
class Rules:
    """The tokens that may follow, the same in every search.

    PAD and START are never generated, UNKNOWN only if `allow_unknown` is set, END not before
    `min_length` tokens, and no sequence of `no_repeat_ngram` tokens occurs twice. Two exceptions
    have priority:

    - a forced token is always generated
    - if every other token is forbidden, END is allowed even before `min_length`, so that every
      hypothesis can end
    """

    min_length: int = 0
    no_repeat_ngram: int = 0
    allow_unknown: bool = False

    @property
    def excluded_tokens(self) -> list[int]:
        """Tokens that are generated only if they are forced."""
        return [PAD, START] if self.allow_unknown else [PAD, START, UNKNOWN]

    def __call__(
        self, log_probabilities: Tensor, generated: Tensor, forced: Tensor | None
    ) -> Tensor:
        """Like `forbid`, but on a copy of the log-probabilities."""
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

        log_probabilities: (R, V)     of the model
        generated:         (R, 1 + t) START and the t tokens of each row so far
        forced:            (R,)       token that each row must generate, PAD if it is free; None if
                                      all rows are free
        position:          ()         t, if `generated` also has space for later tokens
        """
        end = log_probabilities[:, END].clone()
        forced_values = None if forced is None else log_probabilities.gather(1, forced.unsqueeze(1))
        log_probabilities[:, PAD : START + 1].fill_(FORBIDDEN)
        if not self.allow_unknown:
            log_probabilities[:, UNKNOWN].fill_(FORBIDDEN)
        if self.no_repeat_ngram:
            forbid_repeats(log_probabilities, generated, self.no_repeat_ngram, position)
        length = generated.shape[1] - 1 if position is None else position
        self._forbid_early_end(log_probabilities, end, length)
        if forced is not None and forced_values is not None:
            log_probabilities.masked_fill_((forced != PAD).unsqueeze(1), FORBIDDEN)
            # In a free row this writes to PAD, which is forbidden already.
            free = (forced == PAD).unsqueeze(1)
            log_probabilities.scatter_(
                1, forced.unsqueeze(1), forced_values.masked_fill(free, FORBIDDEN)
            )

    def _forbid_early_end(
        self, log_probabilities: Tensor, end: Tensor, length: int | Tensor
    ) -> None:
        """Forbid END before min_length, unless nothing else is allowed.

        log_probabilities: (R, V), changed in place
        end:               (R,) log-probability of END
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

    log_probabilities (R, V), generated (R, 1 + t). An earlier n-gram whose first size - 1 tokens
    equal the last ones of its row forbids its own last token. If `position` () is given, it is t,
    and `generated` also has space for later tokens; n-grams that reach into it do not count.
    """
    if generated.shape[1] < size:
        return
    ngrams = generated.unfold(1, size, 1)  # (R, W, size)
    first = generated.shape[1] - size + 1  # index of the last size - 1 tokens
    if position is None:
        recent = generated[:, first:].unsqueeze(1)  # (R, 1, size - 1)
        repeated = (ngrams[..., :-1] == recent).all(dim=-1)  # (R, W)
    else:
        starts = torch.arange(first, device=generated.device)
        recent_start = position - (size - 2)
        offsets = torch.arange(size - 1, device=generated.device)
        recent = generated.index_select(1, (recent_start + offsets).clamp(min=0)).unsqueeze(1)
        repeated = (ngrams[..., :-1] == recent).all(dim=-1) & (starts < recent_start)
    # PAD stands for "no token": it is forbidden already.
    log_probabilities.scatter_(1, torch.where(repeated, ngrams[..., -1], PAD), FORBIDDEN)


class ForcedPrefixes:
    """The prefixes that outputs are forced to start with, position by position."""

    def __init__(self, prefixes: Sequence[Sequence[int]] | None, device: torch.device) -> None:
        prefixes = prefixes or []
        self._length = max(map(len, prefixes), default=0)
        rows = [[*prefix, *[PAD] * (self._length - len(prefix))] for prefix in prefixes]
        self._tokens = torch.tensor(rows, dtype=torch.long, device=device)  # (B, P)

    def at(self, position: int, sources: Callable[[], Tensor]) -> Tensor | None:
        """(R,) token forced at this position in each row, PAD where the row is free.

        None if no row of the batch is forced any more.

        sources: computes the source of each row (R,); called only if needed
        """
        return self._tokens[sources(), position] if position < self._length else None


def default_max_length(source_tokens: int, config: SearchRulesConfig) -> int:
    """Maximum number of tokens of an output, END included, for a source of this many tokens.

    The configured `max_length`; without it, twice the source length plus 32 and at most 256, but
    always enough for `min_length` tokens and END.
    """
    if config.max_length is not None:
        return config.max_length
    return max(min(MAX_DEFAULT_LENGTH, 2 * source_tokens + 32), config.min_length + 1)
