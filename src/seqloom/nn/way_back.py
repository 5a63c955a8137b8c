"""Ways back through a network that are written out by hand, where autograd's own are slow."""

import torch
from torch import Tensor

Gradients = tuple[Tensor | None, ...]
"""Of all that a function was given."""


def learns_on_cpu(tensor: Tensor) -> bool:
    """Will a gradient be asked for, on a CPU and in the precision of the weights?"""
    on_cpu = tensor.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    return on_cpu and tensor.requires_grad and torch.is_grad_enabled()
