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


def keep_mask(states: Tensor, share: float) -> Tensor:
    """In the shape of `states`: 0 where an entry is dropped, 1/share where it is kept."""
    levels = round(share * LEVELS)
    draws = torch.empty(-(-states.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    bits = draws.view(torch.int16)[: states.numel()]
    kept = (bits < levels - LEVELS // 2).view(states.shape)
    return torch.where(kept, states.new_tensor(LEVELS / max(levels, 1)), states.new_zeros(()))
