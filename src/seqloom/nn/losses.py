"""Loss functions. They return sums over positions, not means.

The training step divides these sums by the number of targets in all its batches on all ranks. See
`training/step.py` and, for steps captured as CUDA graphs, `training/fast/cuda_graphs.py`.

`smoothed_cross_entropy_sum` defines the cross-entropy with label smoothing. These faster forms compute
the same without a mask of the possible tokens or without a tensor of all log-probabilities:

    cross_entropy_sum                               all V tokens are possible (torch)
    nn/fast/cross_entropy.py                        output layer and loss in chunks, on a CPU
    nn/fast/fused_functions.linear_cross_entropy    output layer and loss, on a GPU
    nn/fast/fused_functions.r_drop                  two passes and their divergence, on a GPU
    nn/copying.copying_loss                         the mixture of generating and copying
"""

import torch
import torch.nn.functional as F
from torch import Tensor

NO_TARGET = -100
"""Id that no token has. It is the default of torch for targets that have no loss."""


def smoothed_cross_entropy_sum(
    log_probabilities: Tensor, targets: Tensor, smoothing: float = 0.0, padding: int = NO_TARGET
) -> Tensor:
    """Return the cross-entropy with label smoothing, summed over all positions with a target -> ()

        L = -Σ_t [ (1 - ε) log p_t(y_t) + ε / |P_t| Σ_{v in P_t} log p_t(v) ]

    (Szegedy et al. 2016, section 7). y_t is the target at position t. P_t is the set of the possible
    tokens at position t: those whose probability is not exactly 0. The smoothing mass ε is spread
    evenly over P_t, target included. An impossible token gets no share, because log 0 would make the
    loss infinite. Impossible tokens are PAD and START with `special_outputs = false`, and the tokens
    that are not labels in a `LabelReadout`.

    log_probabilities: (…, V); -inf for impossible tokens
    targets:           (…) token ids
    smoothing:         ε, from 0 to 1. Default: 0
    padding:           targets with this id have no loss. Default: all targets have a loss
    """
    likelihood = F.nll_loss(
        log_probabilities.flatten(0, -2), targets.flatten(), reduction="sum", ignore_index=padding
    )
    if not smoothing:
        return likelihood
    impossible = log_probabilities == float("-inf")
    sums = log_probabilities.masked_fill(impossible, 0.0).sum(-1)
    # torch adds up bytes faster than booleans.
    possible_count = impossible.shape[-1] - impossible.view(torch.uint8).sum(-1)
    mean_loss = -(sums / possible_count)
    return (1 - smoothing) * likelihood + smoothing * (mean_loss * (targets != padding)).sum()


def cross_entropy_sum(
    logits: Tensor, targets: Tensor, smoothing: float = 0.0, padding: int = NO_TARGET
) -> Tensor:
    """Return `smoothed_cross_entropy_sum` of logits, if all tokens are possible: (N, V), (N,) -> ()"""
    return F.cross_entropy(
        exact(logits), targets, reduction="sum", label_smoothing=smoothing, ignore_index=padding
    )


def exact(tensor: Tensor) -> Tensor:
    """Convert bf16 and fp16 to float32, because they are too inexact for sums of probabilities."""
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


def squared_error_sum(predictions: Tensor, targets: Tensor) -> Tensor:
    """Return the sum of ‖prediction - target‖² over N positions: (N, D), (N, D) -> ()"""
    return F.mse_loss(predictions, targets, reduction="sum")
