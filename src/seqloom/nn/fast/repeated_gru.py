"""Single steps of a GRU with a hand-written gradient, for training on a CPU.

If a recurrent decoder uses the attention context as an input of the next step, it has to run the
GRU step by step. A step computes W x and U h for the input x and the hidden vector h (see
`fast/gru.py`). Two parts of this work do not need to be done step by step:

- The part of x that is known before the first step, the embedded tokens, is multiplied by W for all
  steps in one product.
- Autograd would compute the gradients of the large matrices W and U at every step and add these
  gradients up. Here the gradients with respect to the vectors W x and U h are first collected over
  all steps. Then the gradient of each matrix is computed as one product over all steps.
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
    """The weights of a GRU, and the inputs of all T steps. B is the batch size.

    The input x of a step is [k; r]. The first K entries, k, are known before the first step. All
    tensors are detached. The autograd graph refers to this object, so a tensor that refers to the
    graph would close a reference cycle.

    weights:    (3 N, D) weights W of the input, (3 N, N) weights U of the hidden vector, and their
                biases
    transposed: these weights, transposed for the forward pass
    known:      (T, B, K) the known part k of all inputs
    projected:  (T, B, 3 N) the product of W and [k; 0]
    rest:       the part r (B, D - K) of the input of each finished step
    previous:   the hidden vector (B, N) before each finished step
    """

    weights: list[Tensor]
    transposed: TransposedWeights
    known: Tensor
    projected: Tensor
    rest: list[Tensor] = field(default_factory=list)
    previous: list[Tensor] = field(default_factory=list)

    @classmethod
    def of(cls, known: Tensor, weights: list[Tensor]) -> "_Sequence":
        transposed = TransposedWeights.of(*weights)
        steps, rows, known_width = known.shape
        projected = known.flatten(0, 1) @ transposed.input[:known_width]
        return cls(weights, transposed, known, projected.view(steps, rows, -1))

    @property
    def known_width(self) -> int:
        return self.known.shape[2]


def repeated_gru(known: Tensor, weights: list[Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function that runs one GRU step.

    Its arguments are the rest of the step's input (B, D - K) and the hidden vector (B, N). Its
    result is the next hidden vector (B, N). Call it once per step, at most T times.

    known:   (B, T, K) the first K entries of the inputs of all T steps; K can be 0
    weights: weights (3 N, D) of the input, weights (3 N, N) of the hidden vector, and their biases
             (3 N,), (3 N,). Each tensor stacks the parts of reset gate, update gate and candidate,
             as in torch
    """
    by_step = known.transpose(0, 1).contiguous()  # (T, B, K)
    sequence = _Sequence.of(by_step.detach(), [weight.detach() for weight in weights])
    slots = _GruGradientSlots.apply(sequence, by_step, *weights)  # type: ignore[no-untyped-call]
    unused_slots = zip(*(slot.unbind() for slot in slots), strict=True)

    def step(rest: Tensor, hidden: Tensor) -> Tensor:
        following: Tensor = _GruStep.apply(  # type: ignore[no-untyped-call]
            sequence, rest, hidden, *next(unused_slots)
        )
        return following

    return step


class _GruStep(torch.autograd.Function):
    """One GRU step: rest of the input (B, D - K), hidden vector h (B, N) -> next h (B, N)

    `backward` does not compute the gradients of the weights W and U and of the known part of the
    input. The class `_GruGradientSlots` computes them once for all steps. It needs the gradients of
    the products W x and U h of each step.

    A step passes these on through its dummy inputs `gates_slot` (B, 3 N) and `candidates_slot`
    (B, N). `forward` does not read the slots. `backward` returns the gradients of W x and U h as the
    gradients of the slots.
    """

    @staticmethod
    def forward(
        ctx: Any,
        sequence: _Sequence,
        rest: Tensor,
        hidden: Tensor,
        gates_slot: Tensor,
        candidates_slot: Tensor,
    ) -> Tensor:
        weights = sequence.transposed
        projected = sequence.projected[len(sequence.previous)]
        gates = torch.addmm(projected, rest, weights.input[sequence.known_width :])
        candidates, following = torch.empty_like(hidden), torch.empty_like(hidden)
        run_step(gates, candidates, hidden, weights, out=following)
        sequence.rest.append(rest.detach())
        sequence.previous.append(hidden.detach())
        ctx.sequence = sequence
        ctx.save_for_backward(gates, candidates, hidden)
        return following

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Gradients:
        sequence: _Sequence = ctx.sequence
        (gradient,), values = gradients, StepValues(*ctx.saved_tensors)
        input_weight, state_weight, *_ = sequence.weights
        grad_gates = torch.empty_like(values.gates)
        grad_candidates = torch.empty_like(values.candidates)
        grad_hidden = run_step_backward(gradient, values, state_weight, grad_gates, grad_candidates)
        grad_rest = grad_gates @ input_weight[:, sequence.known_width :]
        return None, grad_rest, grad_hidden, grad_gates, grad_candidates


class _GruGradientSlots(torch.autograd.Function):
    """Computes the gradients of weights and known inputs of a GRU once for all T steps.

    `forward` returns two dummy inputs of zeros, called slots, for each step: (T, B, 3 N) and
    (T, B, N). The steps do not read the slots. In its backward pass, a step returns the gradients of
    its products W x and U h as the gradients of its slots. `backward` computes the other gradients
    from these.
    """

    @staticmethod
    def forward(
        ctx: Any, sequence: _Sequence, known: Tensor, *weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.sequence = sequence
        (steps, rows, _), (outputs, width) = known.shape, weights[1].shape
        zero = known.new_zeros(())
        return zero.expand(steps, rows, outputs), zero.expand(steps, rows, width)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Gradients:
        sequence: _Sequence = ctx.sequence
        grad_known = None
        if ctx.needs_input_grad[1]:
            known_weight = sequence.weights[0][:, : sequence.known_width]
            grad_known = (gradients[0].flatten(0, 1) @ known_weight).view(sequence.known.shape)
        finished = len(sequence.previous)
        grad_gates, grad_candidates = (each[:finished].flatten(0, 1) for each in gradients)
        inputs = [sequence.known[:finished].flatten(0, 1), torch.cat(sequence.rest)]
        previous = torch.cat(sequence.previous)
        return (
            None,
            grad_known,
            *weight_gradients(grad_gates, inputs, grad_gates, grad_candidates, previous),
        )
