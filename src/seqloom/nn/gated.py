"""A GRU over a whole sequence and its way back, written out: for learning on a CPU.

    r, z = σ(W x + U h)    n = tanh(W x + r ∘ U h)    h' = (1 - z) ∘ n + z ∘ h      (and biases)

torch goes back operation by operation, and at every step adds megabytes to the gradient of the
same weights. Here all steps lay down what they found side by side, and each matrix gets its
gradient from one product over all of them.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def gated_units(inputs: Tensor, start: Tensor, weights: list[Tensor]) -> Tensor:
    """(T, B, D) from state (B, W) -> (T, B, W), as torch.gru; weights: W, U and their biases."""
    hidden: Tensor = _GatedUnits.apply(inputs, start, *weights)  # type: ignore[no-untyped-call]
    return hidden


class _GatedUnits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, start: Tensor, *weights: Tensor) -> Tensor:
        """weights: (3 W, D), (3 W, W), (3 W,), (3 W,), of reset, update and new in this order"""
        into, along, into_bias, along_bias = weights
        steps, rows, _ = inputs.shape
        width = start.shape[1]
        gates = torch.addmm(into_bias, inputs.flatten(0, 1), into.t().contiguous())
        gates = gates.view(steps, rows, 3 * width)  # in whose place r, z and n will be
        turned = along.t().contiguous()
        recalled = inputs.new_empty(steps, rows, width)  # what of the past n may see, before r
        hidden = inputs.new_empty(steps + 1, rows, width)
        hidden[0] = start
        for step in range(steps):
            past = torch.addmm(along_bias, hidden[step], turned)  # (B, 3 W)
            both = gates[step, :, : 2 * width].add_(past[:, : 2 * width]).sigmoid_()
            reset, update = both.chunk(2, dim=1)
            recalled[step] = past[:, 2 * width :]
            new = gates[step, :, 2 * width :].addcmul_(reset, recalled[step]).tanh_()
            torch.lerp(new, hidden[step], update, out=hidden[step + 1])
        ctx.save_for_backward(inputs, into, along, gates, recalled, hidden)
        return hidden[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        inputs, into, along, gates, recalled, hidden = ctx.saved_tensors
        (to_hidden,) = gradients  # (T, B, W)
        steps, _, width = to_hidden.shape
        to_gates, to_past = torch.empty_like(gates), torch.empty_like(gates)
        later = torch.zeros_like(hidden[0])  # (B, W) what the steps behind want of a state
        for step in range(steps - 1, -1, -1):
            reset, update, new = gates[step].chunk(3, dim=1)
            to_reset, to_update, to_new = to_gates[step].chunk(3, dim=1)
            wanted = later.add_(to_hidden[step])
            kept = wanted * update
            ops = torch.ops.aten
            ops.tanh_backward.grad_input(wanted - kept, new, grad_input=to_new)
            onward = (hidden[step] - new).mul_(wanted)
            ops.sigmoid_backward.grad_input(onward, update, grad_input=to_update)
            ops.sigmoid_backward.grad_input(to_new * recalled[step], reset, grad_input=to_reset)
            to_past[step, :, : 2 * width] = to_gates[step, :, : 2 * width]
            torch.mul(to_new, reset, out=to_past[step, :, 2 * width :])
            later = kept.addmm_(to_past[step], along)
        now, before = to_gates.flatten(0, 1), to_past.flatten(0, 1)  # (T · B, 3 W)
        ones = now.new_ones(len(now))
        return (
            (now @ into).view(inputs.shape) if ctx.needs_input_grad[0] else None,
            later,
            now.t() @ inputs.flatten(0, 1),
            before.t() @ hidden[:-1].flatten(0, 1),
            ones @ now,
            ones @ before,
        )
