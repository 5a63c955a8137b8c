"""The device that models run on."""

import os
import re
from contextlib import AbstractContextManager, nullcontext

import torch

from seqloom.core.device_setting import DEVICE_VARIABLE
from seqloom.core.errors import ConfigError


def best_device() -> torch.device:
    """The device that --device or SEQLOOM_DEVICE selects. Default: the GPU if there is one, else
    the CPU."""
    name = os.environ.get(DEVICE_VARIABLE) or ("cuda" if torch.cuda.is_available() else "cpu")
    match = re.fullmatch(r"(cpu)|cuda(?::(\d+))?", name)
    if match is None:
        raise ConfigError(
            f"{DEVICE_VARIABLE}={name}: is not a device. Use cpu, cuda, or cuda:1 for the second GPU."
        )
    if match[1]:
        return torch.device("cpu")
    index = None if match[2] is None else int(match[2])
    _check_gpu(name, index)
    # cuDNN attention computes an execution plan for every new shape. Computing a plan takes longer
    # than ten steps. The other attention kernels need no plan.
    torch.backends.cuda.enable_cudnn_sdp(False)
    if index is None:
        return torch.device("cuda")
    torch.cuda.set_device(index)  # for tensors that are created on "cuda" without an index
    return torch.device("cuda", index)


def as_current_device(device: torch.device) -> AbstractContextManager[object]:
    """Context manager in which this GPU is the current one. For a CPU, it does nothing.

    Each thread has a current GPU of its own, which at first is "cuda:0". Triton kernels and new CUDA
    streams use the current one.
    """
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _check_gpu(name: str, index: int | None) -> None:
    """Raise a ConfigError if torch cannot use this GPU."""
    if not torch.cuda.is_available():
        raise ConfigError(
            f"device {name}: torch finds no GPU. Use --device cpu, or install the NVIDIA driver and "
            "a torch with CUDA."
        )
    count = torch.cuda.device_count()
    if index is not None and index >= count:
        gpus = "1 GPU: cuda:0" if count == 1 else f"{count} GPUs: cuda:0 to cuda:{count - 1}"
        raise ConfigError(f"device {name}: there is no such GPU. This machine has {gpus}.")
