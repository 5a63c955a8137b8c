"""Looks at the same keys and values, one after the other, in training on a CPU.

    w = softmax(K q)        a = V^T w

Left to autograd, every look gives all keys and values gradients of their own, to be added up: far
more to read and write than the look itself. Here what reaches the scores and the contexts of all
looks is brought together, and keys and values get their gradient from one product each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqloom.nn.cache import KeysValues

Gradients = tuple[Tensor | None, ...]
"""Of all that a function was given."""


@dataclass(frozen=True)
class InTurn(KeysValues):
    """Keys and values that are looked at again and again.

    look: queries (B, H, 1, D) -> what they read (B, H, 1, Dv)
    """

    look: Callable[[Tensor], Tensor]


def learns_on_cpu(tensor: Tensor) -> bool:
    """Will a gradient be asked for, on a CPU and in the precision of the weights?"""
    on_cpu = tensor.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    return on_cpu and tensor.requires_grad and torch.is_grad_enabled()


def in_turn(memory: KeysValues, mask: Tensor | None, scale: float, looks: int) -> KeysValues:
    """`memory` for so many looks at most; as it is, where autograd's own way back is taken.

    mask: (B, 1, 1, S) to be added to scores, -inf where there is nothing to see; None: all is seen
    """
    if not learns_on_cpu(memory.keys):
        return memory
    rows, heads = memory.keys.shape[:2]
    keys, values = memory.keys.flatten(0, 1) * scale, memory.values.flatten(0, 1)  # (B H, S, ·)
    hidden = keys.new_zeros(()) if mask is None else mask.expand(-1, heads, -1, -1).flatten(0, 1)
    met: list[tuple[Tensor, Tensor]] = []
    slots = _Slots.apply(met, looks, keys, values)  # type: ignore[no-untyped-call]
    waiting = zip(*(slot.unbind() for slot in slots), strict=True)
    fixed = keys.detach(), values.detach(), hidden

    def look(queries: Tensor) -> Tensor:
        asking, slot = queries.flatten(0, 1), next(waiting)
        read: Tensor = _Look.apply(met, asking, *slot, *fixed)  # type: ignore[no-untyped-call]
        return read.unflatten(0, (rows, heads))

    return InTurn(memory.keys, memory.values, look)


class _Look(torch.autograd.Function):
    """One look, (B H, 1, D) -> (B H, 1, Dv). Its slopes go into slots, as if these were added to
    its scores and to what it reads."""

    @staticmethod
    def forward(ctx: Any, met: list[tuple[Tensor, Tensor]], *given: Tensor) -> Tensor:
        queries, *_, keys, values, hidden = given
        weights = torch.baddbmm(hidden, queries, keys.transpose(1, 2)).softmax(-1)
        met.append((queries, weights))
        ctx.save_for_backward(weights, keys, values)
        return weights @ values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Gradients:
        weights, keys, values = ctx.saved_tensors
        to_weights = gradient @ values.transpose(1, 2)
        slopes = torch._softmax_backward_data(to_weights, weights, -1, weights.dtype)
        return None, slopes @ keys, slopes, gradient, None, None, None


class _Slots(torch.autograd.Function):
    """Zeros, (T, B H, 1, S) and (T, B H, 1, Dv), at which the slopes of all looks come together.
    With what the looks have met in the meantime they become gradients of keys and values."""

    @staticmethod
    def forward(
        ctx: Any, met: list[tuple[Tensor, Tensor]], looks: int, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.met = met
        nothing, (rows, length, width) = keys.new_zeros(()), values.shape
        return nothing.expand(looks, rows, 1, length), nothing.expand(looks, rows, 1, width)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> Gradients:
        queries, weights = (torch.cat(parts, dim=1) for parts in zip(*ctx.met, strict=True))
        to_scores, to_read = (each[: len(ctx.met)].squeeze(2).transpose(0, 1) for each in slopes)
        return None, None, to_scores.transpose(1, 2) @ queries, weights.transpose(1, 2) @ to_read
