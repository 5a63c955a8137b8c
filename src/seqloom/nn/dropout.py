"""Dropout, per entry or per sequence."""

import torch
from torch import Tensor, nn

from seqloom.nn.fast.dropout import dropout_mask


class Dropout(nn.Dropout):
    """Sets entries to zero with probability p and scales the others by 1 / (1 - p).

    Only in training. On a CPU the mask comes from `fast/dropout.py`.
    """

    def forward(self, states: Tensor) -> Tensor:
        """(…) -> (…)"""
        if not self.training or self.p == 0:
            return states
        if states.device.type != "cpu":
            return super().forward(states)
        return states * dropout_mask(states, 1 - self.p)


class LockedDropout(Dropout):
    """Dropout with one mask per sequence, the same at every position (Gal and Ghahramani 2016).

    A new mask at each position would add up along a recurrence until nothing is left of the state.
    """

    def forward(self, states: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)"""
        if not self.training or self.p == 0:
            return states
        return states * super().forward(torch.ones_like(states[:, :1]))


def build_dropout(rate: float, locked: bool) -> Dropout:
    """Dropout per sequence if `locked`, otherwise per entry."""
    return LockedDropout(rate) if locked else Dropout(rate)
