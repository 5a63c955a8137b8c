"""The conditions under which a fast version of a function replaces the plain version.

Most fast versions run only on a CPU, because a GPU has its own kernels for the same work. They also
run only without autocast, because they always compute in the precision of their inputs, while
autocast would choose another precision.
"""

import importlib.util
import os
import platform

import torch
from torch import Tensor

from seqloom.core.threads import THREADS_VARIABLE

IS_ARM = platform.machine() in ("aarch64", "arm64")
"""True on 64-bit ARM."""
PRODUCTS_USE_ONE_THREAD = os.environ.get(THREADS_VARIABLE) == "1"
"""True if the library for matrix products (OpenBLAS or MKL) was loaded with one thread, as in a worker
of `seqloom serve` or with `--threads 1`. `torch.set_num_threads` does not limit OpenBLAS."""
TRITON_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
"""True if Triton interprets its kernels on a CPU. This is slow and meant for tests."""


def on_cpu_without_autocast(tensor: Tensor) -> bool:
    """Return True if operations on the tensor run on a CPU and in the tensor's own precision."""
    return tensor.device.type == "cpu" and not torch.is_autocast_enabled("cpu")


def trains_on_cpu(tensor: Tensor, weight: Tensor) -> bool:
    """Return True if `tensor` is on a CPU, autocast is disabled and `weight` gets a gradient."""
    return torch.is_grad_enabled() and weight.requires_grad and on_cpu_without_autocast(tensor)


def can_use_kernels(queries: Tensor, values: Tensor) -> bool:
    """Return True if the kernels in `fast/kernels.py` can run and support these tensors.

    The kernels compute no gradient, so tensors that need one are not supported.

    queries: tensor whose last dimension is the width of a head's queries
    values:  tensor whose last dimension is the width of a head's values
    """
    width = queries.shape[-1]
    needs_gradient = torch.is_grad_enabled() and (queries.requires_grad or values.requires_grad)
    return (
        (queries.is_cuda or TRITON_INTERPRETED)
        and not needs_gradient
        and values.stride(-1) == 1
        and importlib.util.find_spec("triton") is not None
        and queries.dtype in (torch.float32, torch.bfloat16, torch.float16)
        and queries.dtype == values.dtype
        and values.shape[-1] == width
        and 16 <= width <= 256
        and width & (width - 1) == 0  # a power of two
    )
