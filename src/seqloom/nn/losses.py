"""Losses as sums over real positions. Nothing here divides: `training/step.py` does, once."""

import torch
import torch.nn.functional as F
from torch import Tensor


def cross_entropy_sum(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """Σ -log p(target), in nats: (N, V), (N,) -> ()

    With label smoothing ε the target is a mixture: 1 - ε on the true token, ε spread evenly.
    """
    exact = logits.float() if logits.dtype == torch.bfloat16 else logits
    return F.cross_entropy(exact, targets, reduction="sum", label_smoothing=smoothing)


def squared_error_sum(predictions: Tensor, targets: Tensor) -> Tensor:
    """Σ ‖prediction - target‖²: (N, D), (N, D) -> ()"""
    return F.mse_loss(predictions, targets, reduction="sum")
