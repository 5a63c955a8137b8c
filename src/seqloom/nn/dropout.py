"""Dropout, per entry or per sequence."""

import torch
from torch import Tensor, nn

from seqloom.nn.fast.dropout import dropout_mask


class Dropout(nn.Dropout):
    """Sets entries to zero with probability p and scales the others by 1 / (1 - p).

    In evaluation mode it changes nothing. On a CPU, `fast/dropout.py` computes the mask.
    """

    def forward(self, states: Tensor) -> Tensor:
        """Apply dropout to a tensor of any shape."""
        if not self.training or self.p == 0:
            return states
        if states.device.type != "cpu":
            return super().forward(states)
        return states * dropout_mask(states, 1 - self.p)


class LockedDropout(Dropout):
    """Dropout with one mask per sequence, the same at every position (Gal and Ghahramani 2016).

    With a new mask at each position, the noise would accumulate in a recurrent state.
    """

    def forward(self, states: Tensor) -> Tensor:
        """Apply one dropout mask per sequence: (B, T, D) -> (B, T, D)"""
        if not self.training or self.p == 0:
            return states
        return states * super().forward(torch.ones_like(states[:, :1]))


def build_dropout(rate: float, locked: bool) -> Dropout:
    """Return `LockedDropout` if `locked`, otherwise `Dropout`."""
    return LockedDropout(rate) if locked else Dropout(rate)
