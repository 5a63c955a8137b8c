"""A linear layer and the cross-entropy of its output in one function.

The function computes logits in chunks and never holds all of them in memory.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from seqloom.nn.fast.dispatch import IS_ARM

BITS_PER_NAT = 1 / math.log(2)
CHUNK = 512
"""Maximum number of positions whose logits are in memory at a time."""


class LinearCrossEntropy(torch.autograd.Function):
    """Logits over a vocabulary are the largest tensor of a training step. They are computed in chunks
    that fit in the processor's cache. The gradient of a chunk, softmax(logits) - target
    distribution, overwrites its logits. Nearly all of the time is then spent on matrix products.
    """

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float
    ) -> Tensor:
        """Compute the loss in chunks, and its gradients if they are needed."""
        needs_gradient = any(ctx.needs_input_grad)
        total = features.new_zeros(())
        grad_features, grad_weight, grad_bias = (
            (torch.zeros_like(tensor) if needs_gradient else tensor)
            for tensor in (features, weight, bias)
        )
        buffer = features.new_empty(min(CHUNK, len(features)), len(weight))
        transposed = weight.t()  # (D, V)
        if IS_ARM and len(features) > CHUNK:  # OpenBLAS would transpose the weights for each chunk
            transposed = transposed.contiguous()
        scaled_bias = bias * BITS_PER_NAT
        for start in range(0, len(features), CHUNK):
            chunk = features[start : start + CHUNK]
            chunk_targets = targets[start : start + CHUNK].unsqueeze(1)
            # (n, V), in bits: powers of two are faster than powers of e. The bias is added afterwards,
            # because `addmm` would first write it to all rows, which takes longer.
            logits = buffer[: len(chunk)]
            torch.addmm(logits, chunk, transposed, beta=0, alpha=BITS_PER_NAT, out=logits)
            logits += scaled_bias
            total += _loss_and_gradient(logits, chunk_targets, smoothing)
            if needs_gradient:
                torch.mm(logits, weight, out=grad_features[start : start + CHUNK])
                grad_weight.addmm_(logits.t(), chunk)
                grad_bias += logits.new_ones(len(chunk)) @ logits  # faster than a sum over columns
        if needs_gradient:
            ctx.save_for_backward(grad_features, grad_weight, grad_bias)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return (*(gradient * gradients[0] for gradient in ctx.saved_tensors), None, None)


linear_cross_entropy_sum: Callable[[Tensor, Tensor, Tensor, Tensor, float], Tensor]
linear_cross_entropy_sum = LinearCrossEntropy.apply
"""`losses.smoothed_cross_entropy_sum` of the logits W x + b, if all tokens are possible.

features (N, D), weight (V, D), bias (V,), targets (N,), ε of label smoothing -> ()
"""


def _loss_and_gradient(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Return the cross-entropy summed over n positions, and overwrite `logits` with the gradient.

    logits:  (n, V). Before the call, it contains x / ln 2 for each logit x, so that e^x can be
             computed as a power of 2. After the call, it contains the gradient of the cross-entropy
             with respect to x
    targets: (n, 1) target token ids
    """
    vocabulary = logits.shape[1]
    target_logits = logits.gather(1, targets)
    best = logits.amax(1, keepdim=True)
    mean = logits.mean(1, keepdim=True) if smoothing else torch.zeros_like(target_logits)
    total = logits.sub_(best).exp2_().sum(1, keepdim=True)  # at least 1: 2^0 for the best logit
    normaliser = best + total.log2()
    logits.mul_(total.reciprocal())
    if smoothing:
        logits -= smoothing / vocabulary
    logits.scatter_add_(1, targets, torch.full_like(target_logits, smoothing - 1))
    return (normaliser - (1 - smoothing) * target_logits - smoothing * mean).sum() / BITS_PER_NAT
