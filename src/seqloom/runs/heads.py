"""Which layers and heads are looked at, and which of them tell what a word comes from.

Attention is (T, L, H, S): where each of T tokens looked, layer by layer and head by head.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seqloom.core.errors import ConfigError

Head = tuple[int, int]
"""A layer and a head of it, both counted from 0."""


@dataclass(frozen=True)
class HeadChoice:
    """The heads whose mean aligns words, and the step at which they do.

    heads: none: all there are
    shift: 0: where a decoder looks to find a token; 1: where it looks one step later, when it
           has been given that token and looks for the next (Chen et al. 2020)
    """

    heads: tuple[Head, ...] = ()
    shift: int = 0

    def mean(self, attention: Tensor) -> Tensor:
        """(…, L, H, S) -> (…, S)"""
        if not self.heads:
            return attention.mean((-3, -2))
        layers, heads = (list(numbers) for numbers in zip(*self.heads, strict=True))
        return attention[..., layers, heads, :].mean(-2)

    def rows(self, attention: Tensor) -> Tensor:
        """(T, S) a row for each step -> (T, S) a row for each token.

        A token that nothing follows keeps the step at which it was found.
        """
        steps = torch.arange(len(attention)) + self.shift
        return attention[steps.clamp(max=len(attention) - 1)]

    def __str__(self) -> str:
        named = ", ".join(f"layer {layer + 1} head {head + 1}" for layer, head in self.heads)
        later = ", one step later" if self.shift else ""
        return f"{named or 'all layers and heads'}{later}"


ALL_HEADS = HeadChoice()


@dataclass(frozen=True)
class Looks:
    """Where an output looked: mean (T, S) over all heads, aligning (T, S), heads (T, L, H, S)."""

    mean: Tensor
    aligning: Tensor
    heads: Tensor | None


@dataclass(frozen=True)
class Keeping:
    """What is kept of a step's attention, and how that is read again.

    every:  all layers and heads; else their mean, and the mean of the choice
    """

    every: bool = False
    choice: HeadChoice = ALL_HEADS

    def keep(self, attention: Tensor) -> Tensor:
        """(R, L, H, S) -> (R, L, H, S), or (R, 1 or 2, S)"""
        if self.every:
            return attention
        wanted = [ALL_HEADS, self.choice] if self.choice.heads else [ALL_HEADS]
        return torch.stack([one.mean(attention) for one in wanted], dim=1)

    def read(self, kept: Tensor) -> Looks:
        """What `keep` left of T steps, one after the other."""
        if self.every:
            return Looks(ALL_HEADS.mean(kept), self.choice.rows(self.choice.mean(kept)), kept)
        return Looks(kept[:, 0], self.choice.rows(kept[:, -1]), None)


def chosen_heads(layers: int, heads: int, layer: int | None, head: int | None) -> HeadChoice:
    """What a person asked for, counted from 1; what was left out is averaged over."""
    problems = [
        f"there is no {name} {wanted}; this model has {count}, counted from 1"
        for name, wanted, count in (("layer", layer, layers), ("head", head, heads))
        if wanted is not None and not 1 <= wanted <= count
    ]
    if problems:
        raise ConfigError("\n".join(problems))
    return HeadChoice(
        tuple((one, other) for one in _wanted(layers, layer) for other in _wanted(heads, head))
    )


def _wanted(count: int, one: int | None) -> Sequence[int]:
    return range(count) if one is None else [one - 1]
