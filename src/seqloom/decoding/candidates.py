"""The continuations that a step of beam search considers, and what becomes of them."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from seqloom.decoding.rules import FORBIDDEN
from seqloom.decoding.top import top
from seqloom.text.vocabulary import END


@dataclass(frozen=True)
class Candidates:
    """All the continuations that a step considers: the C best tokens of each hypothesis.

    totals: (B, K · C) log-probability of the hypothesis with the token
    own:    (B, K · C) log-probability of the token alone
    tokens: (B, K · C)
    each:   C, so that candidate i continues hypothesis i // C
    """

    totals: Tensor
    own: Tensor
    tokens: Tensor
    each: int

    @classmethod
    def of(cls, totals: Tensor, allowed: Tensor, width: int) -> "Candidates":
        """The `width` best tokens of each hypothesis. totals (B, K), allowed (B · K, V)"""
        own, tokens = top(allowed, min(width, allowed.shape[1]))  # (B · K, C)
        size, each = len(totals), own.shape[1]
        grown = totals.reshape(-1, 1) + own
        return cls(grown.view(size, -1), own.view(size, -1), tokens.view(size, -1), each)

    def pick(self, places: Tensor) -> "Picked":
        """Some of them: (B, N)"""
        return Picked(
            totals=self.totals.gather(1, places),
            own=self.own.gather(1, places),
            tokens=self.tokens.gather(1, places),
            parents=places // self.each,
        )


@dataclass(frozen=True)
class Picked:
    """Some candidates, (B, N) each; `parents` are the hypotheses that they continue, 0 … K - 1."""

    totals: Tensor
    own: Tensor
    tokens: Tensor
    parents: Tensor


@dataclass(frozen=True)
class Verdict:
    """What becomes of the candidates.

    leaders: (B, K') the best, best first
    ended:   (B, K') which of them end in END, and are saved
    going:   (B, K') the best that do not; their total is -inf where fewer than K' are left
    """

    leaders: Picked
    ended: Tensor
    going: Picked

    def facts(self) -> NDArray[np.bool_]:
        """(2, B, K') which leaders have ended, and which of the others there are.

        In ordinary memory, as is the decision which sources are done: once a step the host waits
        for the device, here and nowhere else.
        """
        return torch.stack([self.ended, self.going.totals > FORBIDDEN]).cpu().numpy()


def judge(candidates: Candidates, width: int) -> Verdict:
    """Of the `width` best candidates those with END are saved; the `width` best others go on."""
    totals = candidates.totals
    count = min(width, totals.shape[1])
    # A hypothesis ends in one way only, so that `width` others are among twice as many.
    leading = totals.topk(min(2 * width, totals.shape[1]), dim=1)
    ends = candidates.tokens.gather(1, leading.indices) == END
    others = leading.values.masked_fill(ends, FORBIDDEN).topk(count, dim=1)
    going = candidates.pick(leading.indices.gather(1, others.indices))
    leaders = candidates.pick(leading.indices[:, :count])
    ended = ends[:, :count] & (leaders.totals > FORBIDDEN)
    return Verdict(leaders, ended, replace(going, totals=others.values))
