"""Single steps of a GRU with a hand-written gradient, for training on a CPU.

If a recurrent decoder uses the attention context as an input of the next step, it has to run the
GRU step by step. A step computes W x and U h for the input x and the hidden vector h (see
`fast/gru.py`). Autograd would compute the gradients of the large matrices W and U at every step and
add these gradients up. Here the gradients with respect to the vectors W x and U h are first
collected over all steps. Then the gradient of each matrix is computed as one product over all steps.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqloom.nn.fast.gru import (
    Gradients,
    StepValues,
    TransposedWeights,
    run_step,
    run_step_backward,
    weight_gradients,
)


@dataclass(frozen=True)
class _Sequence:
    """The weights of a GRU, and the inputs of all steps so far.

    input_weight: (3 N, D) weights W of the input
    state_weight: (3 N, N) weights U of the hidden vector
    transposed:   all weights and biases, transposed for the forward pass
    inputs:       input (B, D) of each step
    previous:     hidden vector (B, N) before each step
    """

    input_weight: Tensor
    state_weight: Tensor
    transposed: TransposedWeights
    inputs: list[Tensor] = field(default_factory=list)
    previous: list[Tensor] = field(default_factory=list)


def repeated_gru(
    weights: list[Tensor], rows: int, steps: int
) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function that runs one GRU step: inputs (B, D), hidden vector (B, N) -> (B, N)

    weights: weights (3 N, D) of the input, weights (3 N, N) of the hidden vector, and their biases
             (3 N,), (3 N,). Each tensor stacks the parts of reset gate, update gate and candidate,
             as in torch
    rows:    B, the batch size
    steps:   maximum number of steps
    """
    constants = [weight.detach() for weight in weights]
    sequence = _Sequence(constants[0], constants[1], TransposedWeights.of(*constants))
    slots = _GruGradientSlots.apply(  # type: ignore[no-untyped-call]
        sequence, rows, steps, *weights
    )
    unused_slots = iter(slots.unbind())

    def step(inputs: Tensor, hidden: Tensor) -> Tensor:
        following: Tensor = _GruStep.apply(  # type: ignore[no-untyped-call]
            sequence, inputs, hidden, next(unused_slots)
        )
        return following

    return step


class _GruStep(torch.autograd.Function):
    """One GRU step: input x (B, D), hidden vector h (B, N) -> next hidden vector (B, N)

    `backward` does not compute the gradients of the weights W and U. The class `_GruGradientSlots`
    computes them once for all steps. It needs the gradients of the products W x and U h of each
    step.

    A step passes these on through its dummy input `slot` (B, 4 N). `forward` does not read the
    slot. `backward` returns the gradients of W x and U h as the gradient of the slot.
    """

    @staticmethod
    def forward(
        ctx: Any, sequence: _Sequence, inputs: Tensor, hidden: Tensor, slot: Tensor
    ) -> Tensor:
        weights = sequence.transposed
        gates = torch.addmm(weights.bias, inputs, weights.input)
        candidates = weights.candidate_bias.repeat(len(hidden), 1)
        following = torch.empty_like(hidden)
        run_step(gates, candidates, hidden, weights, out=following)
        sequence.inputs.append(inputs)
        sequence.previous.append(hidden)
        ctx.sequence = sequence
        ctx.save_for_backward(gates, candidates, hidden)
        return following

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Gradients:
        (gradient,) = gradients
        values = StepValues(*ctx.saved_tensors)
        width = gradient.shape[1]
        grad_slot = gradient.new_empty(len(gradient), 4 * width)
        grad_gates, grad_candidates = grad_slot.split([3 * width, width], dim=1)
        grad_hidden = run_step_backward(
            gradient, values, ctx.sequence.state_weight, grad_gates, grad_candidates
        )
        return None, grad_gates @ ctx.sequence.input_weight, grad_hidden, grad_slot


class _GruGradientSlots(torch.autograd.Function):
    """Computes the gradients of the weights W and U of a GRU once for all T steps.

    `forward` returns a dummy input of zeros, called slot, for each step: (T, B, 4 N). The steps do
    not read the slots. In its backward pass, a step returns the gradients of its products W x and
    U h as the gradient of its slot. `backward` computes the gradients of W and U from these.
    """

    @staticmethod
    def forward(ctx: Any, sequence: _Sequence, rows: int, steps: int, *weights: Tensor) -> Tensor:
        ctx.sequence = sequence
        width = weights[1].shape[1]
        return weights[1].new_zeros(()).expand(steps, rows, 4 * width)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Gradients:
        sequence: _Sequence = ctx.sequence
        computed = gradients[0][: len(sequence.inputs)].flatten(0, 1)  # (T B, 4 N)
        width = computed.shape[1] // 4
        of_rows, of_candidates = computed.split([3 * width, width], dim=1)
        inputs, previous = torch.cat(sequence.inputs), torch.cat(sequence.previous)
        return (
            None,
            None,
            None,
            *weight_gradients(of_rows, inputs, of_rows, of_candidates, previous),
        )
