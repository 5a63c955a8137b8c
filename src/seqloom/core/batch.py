"""Padded sequences, images, and the training batch.

Shape letters, the same in every file:

    B  sources in a batch          T  target positions         V  vocabulary
    R  rows = hypotheses (B · K)   S  source positions         D  width of a vector
    K  hypotheses per source       H  attention heads          L  layers

Other letters are explained where they are used.

There is one mask convention: True marks a real position, False marks padding.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class Source(ABC):
    """The source side of a batch, with one source per row.

    values: (B, …) the sources
    """

    values: Tensor

    @abstractmethod
    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Return a copy with `function` applied to every tensor."""

    @abstractmethod
    def with_rows(self, rows: int) -> Self:
        """Append blank sources until there are `rows` rows."""

    def to(self, device: torch.device) -> Self:
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))


def _with_rows(tensor: Tensor, rows: int) -> Tensor:
    """(B, …) -> (rows, …), zeros in the new rows"""
    return torch.cat([tensor, tensor.new_zeros(rows - len(tensor), *tensor.shape[1:])])


@dataclass(frozen=True)
class Padded(Source):
    """Sequences of unequal length, padded on the right to the longest one.

    values:  (B, T) token ids or (B, T, D) vectors
    lengths: (B,) number of real positions in each row
    """

    lengths: Tensor

    @property
    def mask(self) -> Tensor:
        """(B, T), True at real positions."""
        positions = torch.arange(self.values.shape[1], device=self.values.device)
        return positions < self.lengths.unsqueeze(1)

    @property
    def tokens(self) -> Tensor | None:
        """(B, T) token ids, or None if the values are vectors."""
        return self.values if self.values.dim() == 2 else None

    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        return type(self)(function(self.values), function(self.lengths))

    def with_rows(self, rows: int) -> Self:
        # Attention needs at least one source position, so a blank source has the length 1.
        lengths = _with_rows(self.lengths, rows)
        lengths[len(self.lengths) :] = 1
        return type(self)(_with_rows(self.values, rows), lengths)


@dataclass(frozen=True)
class Images(Source):
    """The images of a batch, all of the same size.

    values: (B, C, height, width) bytes, 0 to 255, with C colour channels
    """

    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        return type(self)(function(self.values))

    def with_rows(self, rows: int) -> Self:
        """Append black images until there are `rows` images."""
        return type(self)(_with_rows(self.values, rows))


@dataclass(frozen=True)
class Packing:
    """Says which pair each position of a packed batch belongs to.

    A packed row holds several pairs of source and target, so that rows of one fixed length contain
    little padding. A position attends only to positions of its own pair, and positions are counted
    from the start of each pair. A Transformer gets the order of tokens only from these positions
    and from the attention mask. Therefore its result for a pair is the same as if the pair had a
    row of its own.

    source_pairs:     (B, S) index of the pair within its row, counted from 1; 0 for padding
    target_pairs:     (B, T) the same for target positions
    source_positions: (B, S) position within the pair, counted from 0
    target_positions: (B, T) the same for target positions
    """

    source_pairs: Tensor
    target_pairs: Tensor
    source_positions: Tensor
    target_positions: Tensor

    @property
    def source_mask(self) -> Tensor:
        """(B, 1, S, S), True where both source positions belong to the same pair."""
        return _same_pair(self.source_pairs, self.source_pairs)

    @property
    def target_mask(self) -> Tensor:
        """(B, 1, T, T), True where a target position may attend to another one.

        A position may attend to itself and to earlier positions. A packed row holds several
        pairs of source and target, and a position attends only to its own pair."""
        return _same_pair(self.target_pairs, self.target_pairs).tril()

    @property
    def cross_mask(self) -> Tensor:
        """(B, 1, T, S), True where a target position may attend to a source position.

        A target position attends to the source of its own pair. Target padding has no pair and
        attends to all source positions: if it attended to nothing, its softmax would be NaN.
        """
        padding = (self.target_pairs == 0)[:, None, :, None]
        return _same_pair(self.target_pairs, self.source_pairs) | padding

    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Return a copy with `function` applied to every tensor."""
        return type(self)(
            function(self.source_pairs),
            function(self.target_pairs),
            function(self.source_positions),
            function(self.target_positions),
        )


def _same_pair(queries: Tensor, keys: Tensor) -> Tensor:
    """(B, T), (B, S) -> (B, 1, T, S), True where both positions belong to the same pair.

    A packed row holds several pairs of source and target. Their indices start at 1. Padding has the
    index 0, so it attends to other padding. If it attended to nothing, its softmax would be NaN.

    queries: (B, T) index of the pair at each position that attends
    keys:    (B, S) index of the pair at each position that is attended to
    """
    return (queries.unsqueeze(2) == keys.unsqueeze(1)).unsqueeze(1)


@dataclass(frozen=True)
class Batch:
    """The examples of one training step.

    source:  the sources, such as sequences of tokens or images; None for a language model
    inputs:  the decoder's inputs: START, then the target without END
    targets: the token to predict at each position: the target, then END
    packing: which pair each position belongs to; None if each row holds one pair
    lead:    (B,) number of positions at the start of each row that the decoder reads only as
             context. Their targets are padding and do not count in the loss. None if no row has
             such positions
    block:   (N,) all tensors of the batch, which are views of this one; None if they are separate
    """

    source: Source | None
    inputs: Padded
    targets: Padded
    packing: Packing | None = None
    lead: Tensor | None = None
    block: Tensor | None = None

    @property
    def size(self) -> int:
        return self.targets.values.shape[0]

    @property
    def num_targets(self) -> int:
        """Number of target positions that count in the loss.

        Padding does not count. The first `lead` positions of a row are only context, so they do
        not count either.
        """
        counted = self.targets.lengths if self.lead is None else self.targets.lengths - self.lead
        return int(counted.sum())

    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Return a copy with `function` applied to every tensor.

        The first dimension of every tensor is B. If `function` selects rows of a tensor, the result
        is a smaller batch.
        """
        source = None if self.source is None else self.source.map(function)
        packing = None if self.packing is None else self.packing.map(function)
        lead = None if self.lead is None else function(self.lead)
        return type(self)(
            source, self.inputs.map(function), self.targets.map(function), packing, lead
        )

    def to(self, device: torch.device) -> Self:
        return self.map(lambda tensor: tensor.to(device, non_blocking=True))

    def tensors(self) -> list[Tensor]:
        """Return all tensors of the batch, always in the same order."""
        collected: list[Tensor] = []

        def collect(tensor: Tensor) -> Tensor:
            collected.append(tensor)
            return tensor

        self.map(collect)
        return collected

    def in_one_block(self, **options: Any) -> Self:
        """Return a copy whose tensors are views of one tensor, so that a single copy moves all of them.

        Tensors of different types are copied to separate tensors.

        options: arguments of torch.empty, such as `device` or `pin_memory`
        """
        tensors = self.tensors()
        sizes = [tensor.numel() for tensor in tensors]
        dtypes = {tensor.dtype for tensor in tensors}
        if len(dtypes) > 1:
            return self.map(
                lambda tensor: torch.empty(tensor.shape, dtype=tensor.dtype, **options).copy_(
                    tensor
                )
            )
        block = torch.empty(sum(sizes), dtype=dtypes.pop(), **options)
        parts = iter(block.split(sizes))
        copy = self.map(lambda tensor: next(parts).view(tensor.shape).copy_(tensor))
        return replace(copy, block=block)

    def copy_from(self, other: "Batch") -> None:
        """Copy the tensors of a batch of the same shape to the tensors of this batch."""
        if self.block is not None and other.block is not None:
            self.block.copy_(other.block, non_blocking=True)
            return
        for target, tensor in zip(self.tensors(), other.tensors(), strict=True):
            target.copy_(tensor, non_blocking=True)

    def halves(self) -> tuple[Self, Self]:
        """Split the batch into two batches: the first half of its rows, and the second half."""
        middle = self.size // 2
        return self.map(lambda tensor: tensor[:middle]), self.map(lambda tensor: tensor[middle:])
