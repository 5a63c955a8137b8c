"""Dropout, without the cost it usually has on a CPU."""

import torch
from torch import Tensor, nn

LEVELS = 1 << 16
"""Shares of what is kept are multiples of 1/65,536."""


class Dropout(nn.Dropout):
    """Numbers are set to zero with probability p, the others scaled up so that their mean stays.

    torch draws a number of 32 bits for each entry, which on a CPU takes longer than the matrix
    product beside it. Sixteen bits are enough to decide, so here one draw serves four entries.
    """

    def forward(self, states: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return states
        if states.device.type != "cpu":
            return super().forward(states)
        return states * keep_mask(states, 1 - self.p)


class LockedDropout(Dropout):
    """What is dropped is drawn once for a whole sequence (Gal and Ghahramani 2016).

    Drawn anew at each position, noise adds up along a chain of states until nothing is left of
    what it carries; locked, a state goes without the same numbers all the way.
    """

    def forward(self, states: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)"""
        if not self.training or self.p == 0:
            return states
        return states * super().forward(torch.ones_like(states[:, :1]))


def build_dropout(share: float, locked: bool) -> Dropout:
    """The one of the two that a part wants."""
    return LockedDropout(share) if locked else Dropout(share)


def keep_mask(states: Tensor, share: float) -> Tensor:
    """In the shape of `states`: 0 where an entry is dropped, 1/share where it is kept."""
    levels = round(share * LEVELS)
    draws = torch.empty(-(-states.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    bits = draws.view(torch.int16)[: states.numel()]
    kept = (bits < levels - LEVELS // 2).view(states.shape)
    return torch.where(kept, states.new_tensor(LEVELS / max(levels, 1)), states.new_zeros(()))
