"""What may not be put out.

A rule sets log-probabilities to -inf and never renormalises the others: what remains is the
model's own probability, and so is the score of every hypothesis.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seqloom.config.schema.decoding import SearchRulesConfig
from seqloom.text.vocabulary import END, PAD, START, UNKNOWN

FORBIDDEN = float("-inf")
LONGEST = 256


@dataclass(frozen=True)
class Rules:
    """Which tokens may come next, in every search alike.

    PAD and START never; UNKNOWN only if allowed; END not before `min_length` tokens; no sequence
    of `no_repeat_ngram` tokens twice. Two things come before all of these:

    - a forced token is put out, whatever it is
    - where every other token is forbidden END is allowed, even before `min_length`, so that
      there is always something to put out and every hypothesis can end
    """

    min_length: int = 0
    no_repeat_ngram: int = 0
    allow_unknown: bool = False

    @property
    def never(self) -> list[int]:
        """Tokens that are not put out unless they are forced."""
        return [PAD, START] if self.allow_unknown else [PAD, START, UNKNOWN]

    def __call__(self, own: Tensor, written: Tensor, forced: Tensor | None) -> Tensor:
        """What the model may put out next, as `forbid`; `own` stays as it is."""
        allowed = own.clone()
        self.forbid(allowed, written, forced)
        return allowed

    def forbid(
        self,
        own: Tensor,
        written: Tensor,
        forced: Tensor | None = None,
        clock: Tensor | None = None,
    ) -> None:
        """Leave, in place, only what the model may put out next.

        own:     (R, V)     the model's own log-probabilities
        written: (R, 1 + t) START and the t tokens of each row so far
        forced:  (R,)       the token each row must put out, PAD where it is free; None: all free
        clock:   ()         t, where `written` has room for later tokens too
        """
        end = own[:, END].clone()
        wanted = None if forced is None else own.gather(1, forced.unsqueeze(1))
        own[:, PAD : START + 1].fill_(FORBIDDEN)
        if not self.allow_unknown:
            own[:, UNKNOWN].fill_(FORBIDDEN)
        if self.no_repeat_ngram:
            forbid_repeats(own, written, self.no_repeat_ngram, clock)
        self._put_off_end(own, end, written.shape[1] - 1 if clock is None else clock)
        if forced is not None and wanted is not None:
            own.masked_fill_((forced != PAD).unsqueeze(1), FORBIDDEN)
            # Where nothing is forced this writes PAD, which is forbidden already.
            free = (forced == PAD).unsqueeze(1)
            own.scatter_(1, forced.unsqueeze(1), wanted.masked_fill(free, FORBIDDEN))

    def _put_off_end(self, own: Tensor, end: Tensor, length: int | Tensor) -> None:
        """No END before min_length, unless there is nothing else. own (R, V), end (R,)"""
        if self.min_length == 0 or (isinstance(length, int) and length >= self.min_length):
            return
        if isinstance(length, int):
            own[:, END].fill_(FORBIDDEN)
        else:
            own[:, END] = end.masked_fill(length < self.min_length, FORBIDDEN)
        stuck = own.amax(dim=1) == FORBIDDEN
        own[:, END] = torch.where(stuck, end, own[:, END])


def forbid_repeats(
    allowed: Tensor, written: Tensor, size: int, clock: Tensor | None = None
) -> None:
    """Forbid, in place, each token that would complete a sequence of `size` tokens again.

    allowed: (R, V), written: (R, 1 + t). A window of `size` tokens whose beginning equals the
    last tokens of its row forbids the token it ended in. With a clock () of t, `written` has room
    for later tokens, and windows that reach there do not count.
    """
    if written.shape[1] < size:
        return
    windows = written.unfold(1, size, 1)  # (R, W, size)
    first = written.shape[1] - size + 1  # of the last size - 1 tokens
    if clock is None:
        recent = written[:, first:].unsqueeze(1)  # (R, 1, size - 1)
        again = (windows[..., :-1] == recent).all(dim=-1)  # (R, W)
    else:
        places = torch.arange(first, device=written.device)
        begin = clock - (size - 2)
        latest = (begin + torch.arange(size - 1, device=written.device)).clamp(min=0)
        recent = written.index_select(1, latest).unsqueeze(1)
        again = (windows[..., :-1] == recent).all(dim=-1) & (places < begin)
    # PAD stands for "nothing": it is forbidden already.
    allowed.scatter_(1, torch.where(again, windows[..., -1], PAD), FORBIDDEN)


class Prefixes:
    """The beginnings that outputs are forced to have, position by position."""

    def __init__(self, prefixes: Sequence[Sequence[int]] | None, device: torch.device) -> None:
        prefixes = prefixes or []
        self._length = max(map(len, prefixes), default=0)
        rows = [[*prefix, *[PAD] * (self._length - len(prefix))] for prefix in prefixes]
        self._tokens = torch.tensor(rows, dtype=torch.long, device=device)  # (B, P)

    def at(self, position: int, sources: Callable[[], Tensor]) -> Tensor | None:
        """(R,) the token forced at this position on a row of each source, PAD where it is free.

        sources: (R,) the source of each row, worked out only if it is needed: None where no row
                 of the batch is forced any more
        """
        return self._tokens[sources(), position] if position < self._length else None


def default_max_length(source_tokens: int, config: SearchRulesConfig) -> int:
    """Tokens an output may have at most, END included, if nothing more is known.

    The configured length, or twice the source and 32 but never above 256; always enough for
    the shortest output the rules allow, and its END.
    """
    if config.max_length is not None:
        return config.max_length
    return max(min(LONGEST, 2 * source_tokens + 32), config.min_length + 1)
