"""Reduction of attention weights to the maps that a prediction stores.

Attention has the shape (T, L, H, S): weights of T target tokens over S source positions, per layer
and head.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from seqloom.core.errors import ConfigError

Head = tuple[int, int]
"""(layer, head), both counted from 0."""


@dataclass(frozen=True)
class HeadChoice:
    """The heads whose mean aligns words.

    heads: empty means all heads
    shift: 0 uses the step that generates a token; 1 uses the next step, which reads the token
           (Chen et al. 2020)
    """

    heads: tuple[Head, ...] = ()
    shift: int = 0

    def mean(self, attention: Tensor) -> Tensor:
        """The mean over the chosen heads: (…, L, H, S) -> (…, S)"""
        if not self.heads:
            return attention.mean((-3, -2))
        layers, heads = (list(numbers) for numbers in zip(*self.heads, strict=True))
        return attention[..., layers, heads, :].mean(-2)

    def shift_rows(self, attention: Tensor) -> Tensor:
        """(T, S) one row per step -> (T, S) one row per token, according to `shift`.

        The last token keeps its own step.
        """
        steps = torch.arange(len(attention)) + self.shift
        return attention[steps.clamp(max=len(attention) - 1)]

    def __str__(self) -> str:
        names = ", ".join(f"layer {layer + 1} head {head + 1}" for layer, head in self.heads)
        later = ", one step later" if self.shift else ""
        return f"{names or 'all layers and heads'}{later}"


ALL_HEADS = HeadChoice()


@dataclass(frozen=True)
class AttentionMaps:
    """The attention maps of one output.

    mean:      (T, S) mean over all heads
    alignment: (T, S) mean over the heads that align words
    heads:     (T, L, H, S) all heads, or None
    """

    mean: Tensor
    alignment: Tensor
    heads: Tensor | None


@dataclass(frozen=True)
class AttentionReduction:
    """Which part of a step's attention is stored during search, and how to read it afterwards.

    all_heads: store every layer and head; otherwise the mean, and the mean of the chosen heads
    """

    all_heads: bool = False
    choice: HeadChoice = ALL_HEADS

    def reduce(self, attention: Tensor) -> Tensor:
        """(R, L, H, S) -> (R, L, H, S), or (R, 1 or 2, S)"""
        if self.all_heads:
            return attention
        choices = [ALL_HEADS, self.choice] if self.choice.heads else [ALL_HEADS]
        return torch.stack([choice.mean(attention) for choice in choices], dim=1)

    def maps(self, stored: Tensor) -> AttentionMaps:
        """The attention maps of an output from the stored attention of its T steps."""
        if self.all_heads:
            alignment = self.choice.shift_rows(self.choice.mean(stored))
            return AttentionMaps(ALL_HEADS.mean(stored), alignment, stored)
        return AttentionMaps(stored[:, 0], self.choice.shift_rows(stored[:, -1]), None)


def choose_heads(layers: int, heads: int, layer: int | None, head: int | None) -> HeadChoice:
    """The heads of a layer and head number, counted from 1; None averages over all."""
    problems = [
        f"there is no {name} {number}; this model has {count}, counted from 1"
        for name, number, count in (("layer", layer, layers), ("head", head, heads))
        if number is not None and not 1 <= number <= count
    ]
    if problems:
        raise ConfigError("\n".join(problems))

    def indices(count: int, number: int | None) -> Sequence[int]:
        return range(count) if number is None else [number - 1]

    return HeadChoice(tuple(product(indices(layers, layer), indices(heads, head))))
