"""A GRU over a whole sequence with a hand-written gradient, for a CPU.

    r = σ(W_r x + U_r h)    z = σ(W_z x + U_z h)    n = tanh(W_n x + r ∘ (U_n h))
    h' = (1 - z) ∘ n + z ∘ h

Each W x and each U h has its own bias, omitted above. W stacks W_r, W_z and W_n; U stacks U_r, U_z
and U_n.

Autograd would compute the gradients of the large matrices W and U at every step and add them up.
Here the intermediate values of all steps are stored in one tensor, and the gradient of each matrix
is computed as one product over all steps.

If several positions have the same input vector, for example that of a frequent token, the product
with W is computed only once for all of them, in the forward and in the backward pass.

On ARM, this GRU is faster than torch's GRU even if no gradient is needed, because it transposes the
weights once per sequence. torch's GRU transposes them at every step.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from seqloom.nn.fast.dispatch import IS_ARM, on_cpu_without_autocast, trains_on_cpu

Gradients = tuple[Tensor | None, ...]
"""One gradient per argument of a function; None for arguments that need none."""
MIN_ROWS_WITHOUT_GRADIENT = 16
"""Minimum number of rows for which `gru` is faster than torch's GRU on ARM without gradients."""


def is_gru_faster(inputs: Tensor, weight: Tensor) -> bool:
    """Return True if `gru` is faster than torch's GRU for these inputs (B, T, D)."""
    if torch.is_grad_enabled():
        return trains_on_cpu(inputs, weight)
    return (
        IS_ARM
        and len(inputs) >= MIN_ROWS_WITHOUT_GRADIENT
        and on_cpu_without_autocast(inputs)
        and not torch.compiler.is_compiling()
    )


def gru(
    inputs: Tensor, start: Tensor, weights: list[Tensor], index: Tensor | None = None
) -> Tensor:
    """Run a GRU over the inputs, like torch.gru. Return the hidden vectors (T, B, N) of all steps.

    inputs:  (T, B, D); with `index`, (M, D): the M different input vectors
    start:   (B, N) initial hidden vector; N is its width
    weights: W (3 N, D) for inputs, U (3 N, N) for hidden vectors, and their biases (3 N,), (3 N,).
             Each tensor stacks the parts of reset gate, update gate and candidate, as in torch
    index:   (T, B) the row of `inputs` that is the input at each position. Default: None, which
             means that `inputs` holds the vector of each position
    """
    hidden: Tensor = _Gru.apply(inputs, index, start, *weights)  # type: ignore[no-untyped-call]
    return hidden


class _Gru(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, index: Tensor | None, start: Tensor, *weights: Tensor
    ) -> Tensor:
        transposed = TransposedWeights.of(*weights)
        steps, rows = inputs.shape[:2] if index is None else index.shape
        width = start.shape[1]
        gates = _rows(inputs) @ transposed.input
        if index is not None:
            gates = gates.index_select(0, index.flatten())
        gates = gates.view(steps, rows, 3 * width)
        candidates = inputs.new_empty(steps, rows, width)
        hidden = inputs.new_empty(steps + 1, rows, width)
        hidden[0] = start
        for step in range(steps):
            run_step(gates[step], candidates[step], hidden[step], transposed, hidden[step + 1])
        ctx.save_for_backward(inputs, index, *weights[:2], gates, candidates, hidden)
        return hidden[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Gradients:
        inputs, index, input_weight, state_weight, gates, candidates, hidden = ctx.saved_tensors
        (grad_hidden,) = gradients  # (T, B, N)
        grad_gates, grad_candidates = torch.empty_like(gates), torch.empty_like(candidates)
        grad_later = torch.zeros_like(hidden[0])  # (B, N) gradient from later steps
        for step in range(len(grad_hidden) - 1, -1, -1):
            grad_later = run_step_backward(
                grad_later.add_(grad_hidden[step]),
                StepValues(gates[step], candidates[step], hidden[step]),
                state_weight,
                grad_gates[step],
                grad_candidates[step],
            )
        of_positions = grad_gates.flatten(0, 1)  # (T B, 3 N)
        of_rows = of_positions
        if index is not None:
            of_rows = gates.new_zeros(len(inputs), of_positions.shape[1])
            of_rows.index_add_(0, index.flatten(), of_positions)
        return (
            (of_rows @ input_weight).view(inputs.shape) if ctx.needs_input_grad[0] else None,
            None,
            grad_later,
            *weight_gradients(
                of_rows,
                [_rows(inputs)],
                of_positions,
                grad_candidates.flatten(0, 1),
                hidden[:-1].flatten(0, 1),
            ),
        )


@dataclass(frozen=True)
class TransposedWeights:
    """The weights of a GRU, transposed for fast products in the forward pass.

    W multiplies the input x of width D, U the hidden vector h of width N. W and U stack the parts
    of the reset gate r, the update gate z and the candidate n.

    input:          (D, 3 N) the transpose of W
    gates:          (N, 2 N) the transpose of the parts r and z of U
    candidate:      (N, N) the transpose of the part n of U
    bias:           (3 N,) bias of W x. Its parts r and z include the bias of U h
    candidate_bias: (N,) bias of the part n of U h
    """

    input: Tensor
    gates: Tensor
    candidate: Tensor
    bias: Tensor
    candidate_bias: Tensor

    @classmethod
    def of(
        cls, input_weight: Tensor, state_weight: Tensor, input_bias: Tensor, state_bias: Tensor
    ) -> "TransposedWeights":
        width = state_weight.shape[1]
        bias = input_bias.clone()
        bias[: 2 * width] += state_bias[: 2 * width]
        return cls(
            input_weight.t().contiguous(),
            state_weight[: 2 * width].t().contiguous(),
            state_weight[2 * width :].t().contiguous(),
            bias,
            state_bias[2 * width :],
        )


class StepValues(NamedTuple):
    """Values of one GRU step that the backward pass needs.

    gates:      (B, 3 N) reset gate r, update gate z and candidate n = tanh(W_n x + r ∘ (U_n h))
    candidates: (B, N) U_n h in this formula, including its bias
    previous:   (B, N) hidden vector h before the step
    """

    gates: Tensor
    candidates: Tensor
    previous: Tensor


def run_step(
    gates: Tensor, candidates: Tensor, previous: Tensor, weights: TransposedWeights, out: Tensor
) -> None:
    """Compute one GRU step. Write the next hidden vector to `out` (B, N).

    The function overwrites `gates` and `candidates` with values for the backward pass. It also adds
    the biases, because the values of one step fit in the processor's cache and those of all steps
    do not.

    gates:      (B, 3 N) before: W x for the input x. After: reset gate, update gate and candidate
    candidates: (B, N) before: any values. After: `weights.candidate_bias` plus U_n h, where U_n is
                the candidate's weight matrix for h
    previous:   (B, N) hidden vector h before the step
    """
    gates.add_(weights.bias)
    gates[:, : weights.gates.shape[1]].addmm_(previous, weights.gates).sigmoid_()
    reset, update, new = gates.chunk(3, dim=1)
    torch.addmm(weights.candidate_bias, previous, weights.candidate, out=candidates)
    _tanh_(new.addcmul_(reset, candidates))
    torch.lerp(new, previous, update, out=out)


def run_step_backward(
    grad_next: Tensor,
    values: StepValues,
    state_weight: Tensor,
    grad_gates: Tensor,
    grad_candidates: Tensor,
) -> Tensor:
    """Compute the gradients of one GRU step, with input x and hidden vector h.

    Return the gradient of h: (B, N). The last two arguments receive the gradients of W x and U h.
    Both gradients have parts for the reset gate, the update gate and the candidate. They differ
    only in the part for the candidate, so only this part of the gradient of U h is stored.

    grad_next:       (B, N) gradient of the next hidden vector
    values:          values that `run_step` computed
    state_weight:    U (3 N, N), the weights of h
    grad_gates:      (B, 3 N) receives the gradient of W x
    grad_candidates: (B, N) receives the gradient of U h, only its part for the candidate
    """
    width = grad_next.shape[1]
    reset, update, new = values.gates.chunk(3, dim=1)
    grad_reset, grad_update, grad_new = grad_gates.chunk(3, dim=1)
    aten = torch.ops.aten
    grad_previous = grad_next * update
    aten.tanh_backward.grad_input(grad_next - grad_previous, new, grad_input=grad_new)
    grad_of_update = (values.previous - new).mul_(grad_next)
    aten.sigmoid_backward.grad_input(grad_of_update, update, grad_input=grad_update)
    grad_of_reset = grad_new * values.candidates
    aten.sigmoid_backward.grad_input(grad_of_reset, reset, grad_input=grad_reset)
    torch.mul(grad_new, reset, out=grad_candidates)
    grad_previous.addmm_(grad_gates[:, : 2 * width], state_weight[: 2 * width])
    return grad_previous.addmm_(grad_candidates, state_weight[2 * width :])


def weight_gradients(
    of_rows: Tensor,
    inputs: Sequence[Tensor],
    of_positions: Tensor,
    of_candidates: Tensor,
    previous: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of the weights W and U of a GRU and of their biases.

    W multiplies the input vector x, U the hidden vector h. There are n positions and m different
    input vectors, because several positions may have the same input vector.

    of_rows:       (m, 3 N) gradient of W x for each input vector, summed over its positions
    inputs:        the input vectors x in one or more parts, which are matrices with m rows and D
                   columns together
    of_positions:  (n, 3 N) gradient of W x at each position
    of_candidates: (n, N) gradient of U h at each position, only its part for the candidate
    previous:      (n, N) hidden vector h before each position
    """
    width = previous.shape[1]
    of_gates = of_positions[:, : 2 * width]  # W_r x + U_r h and W_z x + U_z h
    # A product with ones is faster than torch's sum over the first dimension.
    input_bias = of_rows.new_ones(len(of_rows)) @ of_rows
    candidate_bias = of_candidates.new_ones(len(of_candidates)) @ of_candidates
    return (
        torch.cat([of_rows.t() @ part for part in inputs], dim=1),
        torch.cat((of_gates.t() @ previous, of_candidates.t() @ previous)),
        input_bias,
        torch.cat((input_bias[: 2 * width], candidate_bias)),
    )


def _rows(inputs: Tensor) -> Tensor:
    """Flatten (T, B, D) to (T · B, D). Return a matrix (M, D) of M input vectors unchanged."""
    return inputs.flatten(0, -2)


def _tanh_(values: Tensor) -> Tensor:
    """Overwrite the values with their tanh."""
    if not IS_ARM:
        return values.tanh_()
    # tanh(x) = 2 σ(2 x) - 1. On ARM, torch's sigmoid is three times as fast as its tanh.
    return values.mul_(2).sigmoid_().mul_(2).sub_(1)
