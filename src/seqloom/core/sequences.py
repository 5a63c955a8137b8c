"""Sequences of unequal length in one tensor, and the batch a model is trained on.

Shape letters, the same in every file:

    B  sources in a batch          T  target positions         V  vocabulary
    R  rows = hypotheses (B · K)   S  source positions         D  width of a vector
    K  hypotheses per source       H  attention heads          L  layers

Any other letter is explained where it stands.

There is one mask convention: True marks a real position, False marks padding.
"""

from collections.abc import Callable
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

    @property
    def tokens(self) -> Tensor | None:
        """(B, T) the ids; None if these are vectors."""
        return self.values if self.values.dim() == 2 else None

    def map(self, change: Callable[[Tensor], Tensor]) -> Self:
        """The same with every tensor changed."""
        return type(self)(change(self.values), change(self.lengths))

    def to(self, device: torch.device) -> Self:
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))


@dataclass(frozen=True)
class Images:
    """Images of one size.

    values: (B, C, height, width) bytes, 0 to 255
    """

    values: Tensor

    def map(self, change: Callable[[Tensor], Tensor]) -> Self:
        """The same with every tensor changed."""
        return type(self)(change(self.values))

    def to(self, device: torch.device) -> Self:
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))


Source = Padded | Images
"""What can be read."""


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
        """(B, 1, T, S), True where a target position may look at a source position.

        Padding may look anywhere: where a row is full of sources there is no padding to see.
        """
        padding = (self.target_pairs == 0)[:, None, :, None]
        return _same(self.target_pairs, self.source_pairs) | padding

    def map(self, change: Callable[[Tensor], Tensor]) -> Self:
        """The same with every tensor changed."""
        return type(self)(
            change(self.source_pairs),
            change(self.target_pairs),
            change(self.source_positions),
            change(self.target_positions),
        )


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
    lead:    (B,) how many of a row's first positions are only read: their target is padding;
             None: every real position is answered
    """

    source: Source | None
    inputs: Padded
    targets: Padded
    packing: Packing | None = None
    lead: Tensor | None = None

    @property
    def size(self) -> int:
        return self.targets.values.shape[0]

    @property
    def num_targets(self) -> int:
        """How many real target positions the loss is summed over."""
        answered = self.targets.lengths if self.lead is None else self.targets.lengths - self.lead
        return int(answered.sum())

    def map(self, change: Callable[[Tensor], Tensor]) -> Self:
        """The same with every tensor changed; all of them have a row for each row of the batch."""
        source = None if self.source is None else self.source.map(change)
        packing = None if self.packing is None else self.packing.map(change)
        lead = None if self.lead is None else change(self.lead)
        return type(self)(source, self.inputs.map(change), self.targets.map(change), packing, lead)

    def to(self, device: torch.device) -> Self:
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))

    def tensors(self) -> list[Tensor]:
        """All it is made of, always in the same order."""
        found: list[Tensor] = []

        def note(tensor: Tensor) -> Tensor:
            found.append(tensor)
            return tensor

        self.map(note)
        return found

    def halves(self) -> tuple[Self, Self]:
        """The upper and the lower half of its rows."""
        middle = self.size // 2
        return self.map(lambda tensor: tensor[:middle]), self.map(lambda tensor: tensor[middle:])
