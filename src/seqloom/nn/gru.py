"""A GRU in training on a CPU: its way back written out, so that a batch costs little but products.

    r, z = σ(W x + U h)      m = U_n h      n = tanh(W_n x + r ∘ m)      h' = n + z ∘ (h - n)

Left to autograd, each step gives the matrices gradients of their own, to be added up one by one,
and each gate a handful of passes over its numbers. Here what reaches the four sums, their slopes,
is kept side by side for all steps: [n̄, r̄, z̄, m̄], of which the first three belong to W and the
last three to U. Then every matrix gets its gradient from one product over all steps.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqloom.nn.way_back import Gradients


def gru_over_time(inputs: Tensor, state: Tensor, weights: list[Tensor]) -> Tensor:
    """(B, T, D) from state (B, W), by W, U and their biases -> hidden vectors (B, T, W)"""
    hidden: Tensor = _OverTime.apply(inputs, state, *weights)  # type: ignore[no-untyped-call]
    return hidden


class _OverTime(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, state: Tensor, *weights: Tensor) -> Tensor:
        into, along, *biases = weights
        rows, length, width = *inputs.shape[:2], state.shape[1]
        read = inputs.transpose(0, 1).reshape(rows * length, -1)  # step by step: (T B, D)
        gates = torch.addmm(_first(*biases), read, into.t()).view(length, rows, -1)
        bare = torch.empty_like(gates[..., :width])
        hidden = state.new_empty(length + 1, rows, width)
        hidden[0] = state
        for step in range(length):
            _go_on(hidden[step], gates[step], bare[step], (along, biases[1]), hidden[step + 1])
        ctx.save_for_backward(read, gates, bare, hidden, into, along)
        return hidden[1:].transpose(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Gradients:
        read, gates, bare, hidden, into, along = ctx.saved_tensors
        length, rows, width = bare.shape
        slopes = bare.new_empty(length, rows, 4 * width)
        back, reaching = torch.zeros_like(hidden[0]), gradient.transpose(0, 1)
        for step in reversed(range(length)):
            kept = (gates[step], bare[step], hidden[step + 1])
            back = _go_back(back + reaching[step], kept, along, slopes[step])
        flat, before = slopes.flatten(0, 1), hidden[:-1].flatten(0, 1)
        to_inputs = None
        if ctx.needs_input_grad[0]:
            to_inputs = _to_inputs(flat, into).view(length, rows, -1).transpose(0, 1)
        return to_inputs, back, *_to_weights(flat, read, before)


def _first(into: Tensor, along: Tensor) -> Tensor:
    """(3 W,) the biases that a sum begins with: all but that of m, which waits behind a gate."""
    width = len(into) // 3
    return torch.cat((into[: 2 * width] + along[: 2 * width], into[2 * width :]))


def _go_on(
    state: Tensor, gates: Tensor, bare: Tensor, along: tuple[Tensor, Tensor], after: Tensor
) -> None:
    """One step: `gates` (B, 3 W) are W x + b and become r, z and n; m and h' are written down."""
    weight, bias = along
    double = 2 * state.shape[1]
    gates[:, :double].addmm_(state, weight[:double].t()).sigmoid_()
    torch.addmm(bias[double:], state, weight[double:].t(), out=bare)
    reset, keep, new = gates.chunk(3, dim=1)
    new.addcmul_(reset, bare).tanh_()
    torch.lerp(new, state, keep, out=after)


def _go_back(gradient: Tensor, kept: tuple[Tensor, ...], along: Tensor, slopes: Tensor) -> Tensor:
    """What reaches h' (B, W), to what reaches h; the slopes of the step (B, 4 W) are written down.

    kept: r, z and n side by side, m, h'
    """
    gates, bare, after = kept
    reset, keep, new = gates.chunk(3, dim=1)
    to_new, to_reset, to_keep, to_bare = slopes.chunk(4, dim=1)
    past = gradient * keep
    rest = gradient - past  # what (1 - z) lets through
    torch.ops.aten.tanh_backward.grad_input(rest, new, grad_input=to_new)
    torch.ops.aten.sigmoid_backward.grad_input(to_new * bare, reset, grad_input=to_reset)
    torch.mul(rest, after - new, out=to_keep)  # h' - n = z ∘ (h - n), so z (1 - z) is in it
    torch.mul(to_new, reset, out=to_bare)
    return torch.addmm(past, slopes[:, gradient.shape[1] :], along)


def _to_inputs(slopes: Tensor, into: Tensor) -> Tensor:
    """(N, 4 W) -> (N, D)"""
    width = len(into) // 3
    return slopes[:, : 3 * width] @ into.roll(width, 0)


def _to_weights(slopes: Tensor, inputs: Tensor, states: Tensor) -> tuple[Tensor, ...]:
    """(N, 4 W), (N, D), (N, W) -> gradients of W, U and their biases"""
    width = states.shape[1]
    from_inputs, from_states = slopes[:, : 3 * width], slopes[:, width:]
    sums = slopes.sum(0)
    return (
        (from_inputs.t() @ inputs).roll(-width, 0),
        from_states.t() @ states,
        sums[: 3 * width].roll(-width, 0),
        sums[width:],
    )
