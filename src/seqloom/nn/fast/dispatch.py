"""The conditions under which a fast version of a function replaces the plain version.

Most fast versions run only on a CPU, because a GPU has its own kernels for the same work. They also
run only without autocast, because they always compute in the precision of their inputs, while
autocast would choose another precision.
"""

import importlib.util
import os
import platform
import shutil
import sysconfig
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from seqloom.core.threads import THREADS_VARIABLE

IS_ARM = platform.machine() in ("aarch64", "arm64")
"""True on 64-bit ARM."""
PRODUCTS_USE_ONE_THREAD = os.environ.get(THREADS_VARIABLE) == "1"
"""True if the library for matrix products (OpenBLAS or MKL) was loaded with one thread, as in a worker
of `seqloom serve` or with `--threads 1`. `torch.set_num_threads` does not limit OpenBLAS."""
MAX_NORM_WIDTH = 8192
"""Maximum width of vectors that the kernel of layer normalisation supports."""
BF16_CAPABILITY = (8, 0)
"""The lowest compute capability of NVIDIA GPUs that have instructions for bf16 (Ampere)."""
TRITON_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
"""True if Triton interprets its kernels on a CPU. This is slow and meant for tests."""


def on_cpu_without_autocast(tensor: Tensor) -> bool:
    """Return True if operations on the tensor run on a CPU and in the tensor's own precision."""
    return tensor.device.type == "cpu" and not torch.is_autocast_enabled("cpu")


def trains_on_cpu(tensor: Tensor, weight: Tensor) -> bool:
    """Return True if `tensor` is on a CPU, autocast is disabled and `weight` gets a gradient."""
    return torch.is_grad_enabled() and weight.requires_grad and on_cpu_without_autocast(tensor)


def cudnn_would_use_float16(inputs: Tensor) -> bool:
    """Return True if torch would run a recurrent layer in float16, although autocast uses bf16.

    torch does so for the recurrent layers of cuDNN. Gradients become zero in float16 if they are
    small, and there is no loss scaling with bf16.
    """
    is_active = inputs.is_cuda and torch.is_autocast_enabled("cuda")
    return is_active and torch.get_autocast_dtype("cuda") == torch.bfloat16


def can_use_kernels(queries: Tensor, values: Tensor) -> bool:
    """Return True if the kernels in `fast/kernels.py` can run and support these tensors.

    The kernels compute no gradient, so tensors that need one are not supported.

    queries: tensor whose last dimension is the width of a head's queries
    values:  tensor whose last dimension is the width of a head's values
    """
    width = queries.shape[-1]
    return (
        has_triton(queries)
        and not needs_gradient(queries, values)
        and values.stride(-1) == 1
        and queries.dtype in (torch.float32, torch.bfloat16, torch.float16)
        and queries.dtype == values.dtype
        and values.shape[-1] == width
        and 16 <= width <= 256
        and width & (width - 1) == 0  # a power of two
    )


def can_use_layer_norm(inputs: Tensor, weight: Tensor) -> bool:
    """Return True if `kernels.layer_norm` can run and computes what torch computes.

    The kernel computes no gradient. With autocast, torch returns float32 for inputs of any
    precision, so the kernel then supports only float32.
    """
    return (
        has_triton(inputs)
        and not needs_gradient(inputs, weight)
        and inputs.is_contiguous()
        and inputs.dtype in (torch.float32, torch.bfloat16, torch.float16)
        and not (inputs.dtype != torch.float32 and torch.is_autocast_enabled(inputs.device.type))
        and inputs.shape[-1] <= MAX_NORM_WIDTH
        and inputs.numel() > 0
    )


def can_fuse_loss(features: Tensor) -> bool:
    """Return True if `fused_functions` can compute a loss of these features or logits.

    This requires training on a GPU in bf16, and Triton.
    """
    return (
        features.dtype == torch.bfloat16
        and torch.is_grad_enabled()
        and torch.is_autocast_enabled(features.device.type)
        and has_triton(features)
        and features.numel() > 0
    )


def has_triton(tensor: Tensor) -> bool:
    """Return True if Triton kernels can read this tensor and torch.compile is not active.

    Triton runs kernels on the current GPU, so the tensor must be on that one. The kernels need a GPU
    that computes in bf16.
    """
    if torch.compiler.is_compiling():
        return False
    on_current_gpu = tensor.is_cuda and tensor.get_device() == torch.cuda.current_device()
    can_run = (on_current_gpu and gpu_has_bf16(tensor.device)) or TRITON_INTERPRETED
    return can_run and find_triton()


@cache
def gpu_has_bf16(device: torch.device) -> bool:
    """Return True if the GPU has instructions for bf16.

    `torch.cuda.is_bf16_supported` is True for all GPUs, because torch emulates bf16 on older ones.
    There it is several times slower than float32.
    """
    return torch.cuda.get_device_capability(device) >= BF16_CAPABILITY


@cache
def find_triton() -> bool:
    """Return True if Triton is installed, and what it needs to run a kernel.

    This is a C compiler and Python.h, the header file of Python's development package.
    """
    compilers = (os.environ.get("CC"), "cc", "gcc", "clang")
    has_compiler = any(name and shutil.which(name) for name in compilers)
    # On Debian, the default scheme names a folder in /usr/local, and the headers are in /usr.
    schemes = (sysconfig.get_default_scheme(), "posix_prefix")
    folders = [sysconfig.get_paths(scheme)["include"] for scheme in schemes]
    has_header = any(Path(folder, "Python.h").exists() for folder in folders)
    return has_compiler and has_header and importlib.util.find_spec("triton") is not None


def needs_gradient(*tensors: Tensor) -> bool:
    """Return True if a gradient of one of these tensors is needed."""
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def can_fuse_relu(inputs: Tensor, weight: Tensor) -> bool:
    """Return True if a linear layer and ReLU can run as one GPU kernel (`linear.linear_relu`)."""
    return (
        inputs.is_cuda
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cuda")
        and not needs_gradient(inputs, weight)
    )
