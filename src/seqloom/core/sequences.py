"""Sequences of unequal length in one tensor, and the batch a model is trained on.

Shape letters, the same in every file:

    B  sources in a batch          T  target positions         V  vocabulary
    R  rows = hypotheses (B · K)   S  source positions         D  width of a vector
    K  hypotheses per source       H  attention heads          L  layers

Any other letter is explained where it stands.

There is one mask convention: True marks a real position, False marks padding.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class Padded:
    """Sequences of unequal length, padded on the right to the longest of them.

    values:  (B, T) token ids or (B, T, D) vectors
    lengths: (B,) how many positions of each row are real
    """

    values: Tensor
    lengths: Tensor

    @property
    def mask(self) -> Tensor:
        """(B, T), True where a position is real."""
        positions = torch.arange(self.values.shape[1], device=self.values.device)
        return positions < self.lengths.unsqueeze(1)

    def to(self, device: torch.device) -> Self:
        return type(self)(
            self.values.to(device, non_blocking=True), self.lengths.to(device, non_blocking=True)
        )


@dataclass(frozen=True)
class Batch:
    """What one training step sees.

    source:  what is read; None when there is nothing to read (a language model)
    inputs:  START y1 … yT, what the decoder is fed. END is never fed back in
    targets: y1 … yT END, what it should answer, position by position
    """

    source: Padded | None
    inputs: Padded
    targets: Padded

    @property
    def size(self) -> int:
        return self.targets.values.shape[0]

    @property
    def num_targets(self) -> int:
        """How many real target positions the loss is summed over."""
        return int(self.targets.lengths.sum())

    def to(self, device: torch.device) -> Self:
        source = None if self.source is None else self.source.to(device)
        return type(self)(source, self.inputs.to(device), self.targets.to(device))
