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
class Packing:
    """Several pairs side by side in every row, so that rows of one fixed length are nearly full.

    A position may see positions of its own pair only, and counts from the beginning of its pair:
    to a Transformer, which knows nothing of order but what positions tell it, the pairs of a row
    are as far apart as the rows of a batch.

    source_pairs:     (B, S) the number of a position's pair in its row, from 1; 0 is padding
    target_pairs:     (B, T)
    source_positions: (B, S) counted within the pair, from 0
    target_positions: (B, T)
    """

    source_pairs: Tensor
    target_pairs: Tensor
    source_positions: Tensor
    target_positions: Tensor

    @property
    def source_mask(self) -> Tensor:
        """(B, 1, S, S), True where a source position may look at another."""
        return _same(self.source_pairs, self.source_pairs)

    @property
    def target_mask(self) -> Tensor:
        """(B, 1, T, T), True where a target position may look back at another."""
        return _same(self.target_pairs, self.target_pairs).tril()

    @property
    def cross_mask(self) -> Tensor:
        """(B, 1, T, S), True where a target position may look at a source position."""
        return _same(self.target_pairs, self.source_pairs)

    def to(self, device: torch.device) -> Self:
        parts = (
            self.source_pairs,
            self.target_pairs,
            self.source_positions,
            self.target_positions,
        )
        return type(self)(*(part.to(device, non_blocking=True) for part in parts))


def _same(queries: Tensor, keys: Tensor) -> Tensor:
    """(B, T), (B, S) -> (B, 1, T, S). Padding sees padding, so that no softmax is over nothing."""
    return (queries.unsqueeze(2) == keys.unsqueeze(1)).unsqueeze(1)


@dataclass(frozen=True)
class Batch:
    """What one training step sees.

    source:  what is read; None when there is nothing to read (a language model)
    inputs:  START y1 … yT, what the decoder is fed. END is never fed back in
    targets: y1 … yT END, what it should answer, position by position
    packing: which positions belong together where rows hold several pairs; None: one pair a row
    """

    source: Padded | None
    inputs: Padded
    targets: Padded
    packing: Packing | None = None

    @property
    def size(self) -> int:
        return self.targets.values.shape[0]

    @property
    def num_targets(self) -> int:
        """How many real target positions the loss is summed over."""
        return int(self.targets.lengths.sum())

    def to(self, device: torch.device) -> Self:
        source = None if self.source is None else self.source.to(device)
        packing = None if self.packing is None else self.packing.to(device)
        return type(self)(source, self.inputs.to(device), self.targets.to(device), packing)
