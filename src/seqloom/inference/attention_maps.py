"""Computes the attention maps of a prediction from attention weights.

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
    """The attention heads whose mean is used to align words.

    heads: (layer, head) index pairs of the chosen heads. An empty tuple means all heads.
    shift: 0 or 1. With 0, a token is aligned by the attention of the step that generates it.
           With 1, it is aligned by the attention of the next step, which has the token as input
           (Chen et al. 2020).
    """

    heads: tuple[Head, ...] = ()
    shift: int = 0

    def mean(self, attention: Tensor) -> Tensor:
        """Return the mean attention of the chosen heads: (…, L, H, S) -> (…, S)

        There are L layers with H heads each, and S source positions.
        """
        if not self.heads:
            return attention.mean((-3, -2))
        layers, heads = (list(indices) for indices in zip(*self.heads, strict=True))
        return attention[..., layers, heads, :].mean(-2)

    def shift_rows(self, attention: Tensor) -> Tensor:
        """Shift the rows so that row t shows what token t is aligned to: (T, S) -> (T, S)

        If `shift` is 0, all rows stay the same. If `shift` is 1, row t of the result is row t + 1
        of `attention`. The last row stays the same, because there is no row after it.
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
    heads:     (T, L, H, S) attention of each layer and head; None if it was not stored
    """

    mean: Tensor
    alignment: Tensor
    heads: Tensor | None


@dataclass(frozen=True)
class AttentionReduction:
    """Decides which attention weights a search stores, and computes attention maps from them.

    all_heads: if True, the search stores the weights of every layer and head. If False, it stores
               the mean over all heads and, if `choice` names heads, the mean over these heads.
    choice:    the heads that align words
    """

    all_heads: bool = False
    choice: HeadChoice = ALL_HEADS

    def reduce(self, attention: Tensor) -> Tensor:
        """Return the attention weights that the search stores for one step.

        - If `all_heads` is True: `attention` itself.
        - Otherwise, if `choice` names no heads: the mean over all heads, (R, 1, S).
        - Otherwise: the mean over all heads and the mean over the named heads, (R, 2, S).

        attention: (R, L, H, S) attention of R hypotheses in L layers with H heads each
        """
        if self.all_heads:
            return attention
        choices = [ALL_HEADS, self.choice] if self.choice.heads else [ALL_HEADS]
        return torch.stack([choice.mean(attention) for choice in choices], dim=1)

    def maps(self, stored: Tensor) -> AttentionMaps:
        """Compute the attention maps of one output.

        stored: the attention that `reduce` has returned for the T steps of this output.
                (T, L, H, S): all layers and heads; (T, 1, S): the mean over all heads;
                (T, 2, S): this mean, and the mean over the heads that align words
        """
        if self.all_heads:
            alignment = self.choice.shift_rows(self.choice.mean(stored))
            return AttentionMaps(ALL_HEADS.mean(stored), alignment, stored)
        return AttentionMaps(stored[:, 0], self.choice.shift_rows(stored[:, -1]), None)


def choose_heads(layers: int, heads: int, layer: int | None, head: int | None) -> HeadChoice:
    """Return the heads selected by a layer number and a head number.

    layers: number of layers of the model
    heads:  number of heads per layer
    layer:  number of the layer, counted from 1; None selects all layers
    head:   number of the head, counted from 1; None selects all heads
    """
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
