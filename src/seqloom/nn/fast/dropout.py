"""Dropout on a CPU with fewer random numbers than the dropout of torch.

torch draws 32 random bits for each entry. This takes longer than the matrix product before the
dropout. 16 bits are enough to decide whether an entry is dropped, so here one random number of
64 bits is used for four entries.
"""

import torch
from torch import Tensor

LEVELS = 1 << 16
"""The probability of keeping an entry is rounded to a multiple of 1 / LEVELS."""


def dropout_mask(states: Tensor, keep: float) -> Tensor:
    """Return a mask of the shape of `states`: 1 / keep with probability `keep`, otherwise 0."""
    levels = round(keep * LEVELS)
    draws = torch.empty(-(-states.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    bits = draws.view(torch.int16)[: states.numel()]
    kept = (bits < levels - LEVELS // 2).view(states.shape)
    return torch.where(kept, states.new_tensor(LEVELS / max(levels, 1)), states.new_zeros(()))
