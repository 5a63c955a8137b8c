"""A GRU over a whole sequence with a hand-written gradient, for training on a CPU.

    r = σ(W_r x + U_r h)    z = σ(W_z x + U_z h)    n = tanh(W_n x + r ∘ (U_n h))
    h' = (1 - z) ∘ n + z ∘ h

Each W x and each U h has its own bias, omitted above. W stacks W_r, W_z and W_n; U stacks U_r, U_z
and U_n.

Autograd would compute the gradients of the large matrices W and U at every step and add them up.
Here the intermediate values of all steps are stored in one tensor, and the gradient of each matrix
is computed as one product over all steps.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def gru(inputs: Tensor, start: Tensor, weights: list[Tensor]) -> Tensor:
    """Run a GRU over the inputs, like torch.gru. Return the hidden vectors (T, B, N) of all steps.

    inputs:  (T, B, D)
    start:   (B, N) initial hidden vector; N is its width
    weights: W (3 N, D), U (3 N, N) and their biases (3 N,), (3 N,). Each tensor contains the parts
             of r, z and n, in this order
    """
    hidden: Tensor = _Gru.apply(inputs, start, *weights)  # type: ignore[no-untyped-call]
    return hidden


class _Gru(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, start: Tensor, *weights: Tensor) -> Tensor:
        input_weight, state_weight, input_bias, state_bias = weights
        steps, rows, _ = inputs.shape
        width = start.shape[1]
        gates = torch.addmm(input_bias, inputs.flatten(0, 1), input_weight.t().contiguous())
        gates = gates.view(steps, rows, 3 * width)  # overwritten with r, z and n below
        transposed = state_weight.t().contiguous()
        candidates = inputs.new_empty(steps, rows, width)  # U_n h, before r is applied
        hidden = inputs.new_empty(steps + 1, rows, width)
        hidden[0] = start
        for step in range(steps):
            from_state = torch.addmm(state_bias, hidden[step], transposed)  # (B, 3 N)
            both = gates[step, :, : 2 * width].add_(from_state[:, : 2 * width]).sigmoid_()
            reset, update = both.chunk(2, dim=1)
            candidates[step] = from_state[:, 2 * width :]
            new = gates[step, :, 2 * width :].addcmul_(reset, candidates[step]).tanh_()
            torch.lerp(new, hidden[step], update, out=hidden[step + 1])
        ctx.save_for_backward(inputs, input_weight, state_weight, gates, candidates, hidden)
        return hidden[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        inputs, input_weight, state_weight, gates, candidates, hidden = ctx.saved_tensors
        (grad_hidden,) = gradients  # (T, B, N)
        steps, _, width = grad_hidden.shape
        # Gradients of W x and of U h, each with its bias.
        grad_gates, grad_from_state = torch.empty_like(gates), torch.empty_like(gates)
        grad_later = torch.zeros_like(hidden[0])  # (B, N) gradient from later steps
        for step in range(steps - 1, -1, -1):
            reset, update, new = gates[step].chunk(3, dim=1)
            grad_reset, grad_update, grad_new = grad_gates[step].chunk(3, dim=1)
            grad_state = grad_later.add_(grad_hidden[step])
            grad_previous = grad_state * update
            aten = torch.ops.aten
            aten.tanh_backward.grad_input(grad_state - grad_previous, new, grad_input=grad_new)
            grad_of_update = (hidden[step] - new).mul_(grad_state)
            aten.sigmoid_backward.grad_input(grad_of_update, update, grad_input=grad_update)
            grad_of_reset = grad_new * candidates[step]
            aten.sigmoid_backward.grad_input(grad_of_reset, reset, grad_input=grad_reset)
            grad_from_state[step, :, : 2 * width] = grad_gates[step, :, : 2 * width]
            torch.mul(grad_new, reset, out=grad_from_state[step, :, 2 * width :])
            grad_later = grad_previous.addmm_(grad_from_state[step], state_weight)
        of_inputs, of_states = grad_gates.flatten(0, 1), grad_from_state.flatten(0, 1)  # (T B, 3 N)
        ones = of_inputs.new_ones(len(of_inputs))
        return (
            (of_inputs @ input_weight).view(inputs.shape) if ctx.needs_input_grad[0] else None,
            grad_later,
            of_inputs.t() @ inputs.flatten(0, 1),
            of_states.t() @ hidden[:-1].flatten(0, 1),
            ones @ of_inputs,
            ones @ of_states,
        )
