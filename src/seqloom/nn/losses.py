"""Loss functions. They return sums over positions, not means.

The training step divides these sums by the number of targets in all its batches on all ranks. See
`training/step.py` and, for steps captured as CUDA graphs, `training/fast/cuda_graphs.py`.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def cross_entropy_sum(
    logits: Tensor, targets: Tensor, smoothing: float = 0.0, padding: int | None = None
) -> Tensor:
    """Return the sum of -log p(target) over N positions: logits (N, V), targets (N,) -> ()

    smoothing: ε of label smoothing. The target distribution has probability 1 - ε on the target,
               and ε is spread evenly over the vocabulary (including the target). Default: 0
    padding:   targets with this id are ignored. Default: None
    """
    # bf16 has eight significant bits, too few for a sum over a vocabulary.
    exact = logits.float() if logits.dtype == torch.bfloat16 else logits
    ignored = -100 if padding is None else padding  # -100: the default of torch
    return F.cross_entropy(
        exact, targets, reduction="sum", label_smoothing=smoothing, ignore_index=ignored
    )


def squared_error_sum(predictions: Tensor, targets: Tensor) -> Tensor:
    """Return the sum of ‖prediction - target‖² over N positions: (N, D), (N, D) -> ()"""
    return F.mse_loss(predictions, targets, reduction="sum")
