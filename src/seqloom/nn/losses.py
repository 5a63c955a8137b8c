"""Losses as sums over real positions. Nothing here divides: `training/step.py` does, once."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

BITS = 1 / math.log(2)
"""In one nat."""
CHUNK = 512
"""Positions whose scores over the whole vocabulary are held at a time."""


def cross_entropy_sum(
    logits: Tensor, targets: Tensor, smoothing: float = 0.0, padding: int | None = None
) -> Tensor:
    """Σ -log p(target), in nats: (N, V), (N,) -> ()

    With label smoothing ε the target is a mixture: 1 - ε on the true token, ε spread evenly.
    Targets that are `padding` count for nothing.
    """
    exact = logits.float() if logits.dtype == torch.bfloat16 else logits
    left_out = -100 if padding is None else padding  # torch's own number for "none"
    return F.cross_entropy(
        exact, targets, reduction="sum", label_smoothing=smoothing, ignore_index=left_out
    )


def linear_cross_entropy_sum(
    features: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float = 0.0
) -> Tensor:
    """`cross_entropy_sum` of the scores W x + b, without ever holding all of them.

    features (N, D), weight (V, D), bias (V,), targets (N,) -> ()

    Scores over a vocabulary are the largest tensor of a step by far. Chunk by chunk they stay
    in the processor's cache, and their gradient, softmax(scores) - target, is made in their
    place: on a CPU nearly all that is left to pay is the matrix products.
    """
    loss: Tensor = _LinearCrossEntropy.apply(  # type: ignore[no-untyped-call]
        features, weight, bias, targets, smoothing
    )
    return loss


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float
    ) -> Tensor:
        wanted = any(ctx.needs_input_grad)
        total = features.new_zeros(())
        to_features, to_weight, to_bias = (
            (torch.zeros_like(tensor) if wanted else tensor) for tensor in (features, weight, bias)
        )
        sheet = features.new_empty(min(CHUNK, len(features)), len(weight))
        turned = weight.t().contiguous() if len(features) > CHUNK else weight.t()  # (D, V)
        for start in range(0, len(features), CHUNK):
            part, truth = features[start : start + CHUNK], targets[start : start + CHUNK]
            scores = torch.addmm(  # (n, V), in bits: powers of two are quicker than those of e
                *(bias, part, turned), beta=BITS, alpha=BITS, out=sheet[: len(part)]
            )
            total += _loss_and_gradient(scores, truth.unsqueeze(1), smoothing)
            if wanted:
                torch.mm(scores, weight, out=to_features[start : start + CHUNK])
                to_weight.addmm_(scores.t(), part)
                to_bias += scores.new_ones(len(part)) @ scores  # quicker than a sum over columns
        if wanted:
            ctx.save_for_backward(to_features, to_weight, to_bias)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return (*(gradient * gradients[0] for gradient in ctx.saved_tensors), None, None)


def _loss_and_gradient(scores: Tensor, truth: Tensor, smoothing: float) -> Tensor:
    """The summed loss of scores (n, V), in bits, with answers (n, 1); its gradient takes their place.

    The gradient is that of scores in nats.
    """
    vocabulary = scores.shape[1]
    hit = scores.gather(1, truth)
    best = scores.amax(1, keepdim=True)
    mean = scores.mean(1, keepdim=True) if smoothing else torch.zeros_like(hit)
    total = scores.sub_(best).exp2_().sum(1, keepdim=True)  # one at the least, that of the best
    normaliser = best + total.log2()
    scores.mul_(total.reciprocal())
    if smoothing:
        scores -= smoothing / vocabulary
    scores.scatter_add_(1, truth, torch.full_like(hit, smoothing - 1))
    return (normaliser - (1 - smoothing) * hit - smoothing * mean).sum() / BITS


def squared_error_sum(predictions: Tensor, targets: Tensor) -> Tensor:
    """Σ ‖prediction - target‖²: (N, D), (N, D) -> ()"""
    return F.mse_loss(predictions, targets, reduction="sum")
