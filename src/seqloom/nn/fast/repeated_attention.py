"""Attention to the same keys and values at many steps, for training on a CPU.

    w = softmax(K q)        a = V^T w

If a recurrent decoder uses the context as an input of the next step, it has to compute attention
step by step. Autograd would compute the gradient of all keys and values at every step and add these
gradients up, which moves far more memory than attention itself. Here the gradients of the scores
and contexts of all steps are collected first. Then one product gives the gradient of the keys, and
another one the gradient of the values.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqloom.nn.fast.dispatch import trains_on_cpu
from seqloom.nn.fast.gru import Gradients
from seqloom.nn.key_value_cache import KeysValues


@dataclass(frozen=True)
class RepeatedKeysValues(KeysValues):
    """Keys and values that stay the same at all decoder steps, with a function that computes
    attention to them at one step.

    attend: queries (B, H, 1, D) -> context of each head (B, H, 1, Dv)
    """

    attend: Callable[[Tensor], Tensor] = field(kw_only=True)


def share_gradient(memory: KeysValues, mask: Tensor | None, scale: float, steps: int) -> KeysValues:
    """Prepare keys and values so that their gradients are computed once for all decoder steps.

    Returns a `RepeatedKeysValues` when training on a CPU. Otherwise returns `memory` unchanged.

    memory: the keys and values
    mask:   (B, 1, 1, S) added to the scores: 0 for visible keys, -inf for hidden keys. None: all
            keys are visible
    scale:  factor by which the dot products of queries and keys are multiplied
    steps:  maximum number of steps
    """
    if not trains_on_cpu(memory.keys, memory.keys):
        return memory
    rows, heads = memory.keys.shape[:2]
    keys, values = memory.keys.flatten(0, 1) * scale, memory.values.flatten(0, 1)  # (B H, S, ·)
    additive = keys.new_zeros(()) if mask is None else mask.expand(-1, heads, -1, -1).flatten(0, 1)
    computed: list[tuple[Tensor, Tensor]] = []
    slots = _GradientSlots.apply(computed, steps, keys, values)  # type: ignore[no-untyped-call]
    unused_slots = zip(*(slot.unbind() for slot in slots), strict=True)
    constants = keys.detach(), values.detach(), additive

    def attend(queries: Tensor) -> Tensor:
        context: Tensor = _AttentionStep.apply(  # type: ignore[no-untyped-call]
            computed, queries.flatten(0, 1), *next(unused_slots), *constants
        )
        return context.unflatten(0, (rows, heads))

    return RepeatedKeysValues(memory.keys, memory.values, attend=attend)


class _AttentionStep(torch.autograd.Function):
    """One step of attention: queries (B·H, 1, D) -> contexts (B·H, 1, Dv)

    `backward` computes the gradient of the queries. The class `_GradientSlots` computes the
    gradients of keys and values, once for all steps. For this it needs two gradients from every
    step: the gradient of the scores and the gradient of the context.

    Each step has two dummy inputs, called slots. `forward` ignores them. `backward` returns the two
    gradients as the gradients of the slots. In this way autograd passes them to `_GradientSlots`.
    """

    @staticmethod
    def forward(ctx: Any, computed: list[tuple[Tensor, Tensor]], *arguments: Tensor) -> Tensor:
        queries, _score_slot, _context_slot, keys, values, additive = arguments
        weights = torch.baddbmm(additive, queries, keys.transpose(1, 2)).softmax(-1)
        # Detached, because the autograd graph refers to this list: there would be a reference cycle.
        computed.append((queries.detach(), weights.detach()))
        ctx.save_for_backward(weights, keys, values)
        return weights @ values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Gradients:
        weights, keys, values = ctx.saved_tensors
        grad_weights = gradient @ values.transpose(1, 2)
        grad_scores = torch._softmax_backward_data(grad_weights, weights, -1, weights.dtype)
        return None, grad_scores @ keys, grad_scores, gradient, None, None, None


class _GradientSlots(torch.autograd.Function):
    """Computes the gradients of keys and values once for all T steps of attention.

    `forward` returns two tensors of zeros: (T, B·H, 1, S) and (T, B·H, 1, Dv). Element t of
    each tensor is a dummy input (slot) of step t of attention, which ignores its value. In the
    backward pass, each step returns the gradient of its scores as the gradient of the first slot,
    and the gradient of its context as the gradient of the second slot. So autograd collects the
    gradients of all steps and passes them to `backward`.

    computed: list to which each step appends its queries and attention weights
    """

    @staticmethod
    def forward(
        ctx: Any, computed: list[tuple[Tensor, Tensor]], steps: int, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.computed = computed
        zero, (rows, length, width) = keys.new_zeros(()), values.shape
        return zero.expand(steps, rows, 1, length), zero.expand(steps, rows, 1, width)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Gradients:
        queries, weights = (torch.cat(parts, dim=1) for parts in zip(*ctx.computed, strict=True))
        grad_scores, grad_contexts = (
            each[: len(ctx.computed)].squeeze(2).transpose(0, 1) for each in gradients
        )
        return (
            None,
            None,
            grad_scores.transpose(1, 2) @ queries,
            weights.transpose(1, 2) @ grad_contexts,
        )
