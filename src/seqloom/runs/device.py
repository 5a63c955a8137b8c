"""The device that models run on."""

import torch


def best_device() -> torch.device:
    """The GPU if there is one, else the CPU."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    # cuDNN attention computes an execution plan for every new shape. Computing a plan takes longer
    # than ten steps. The other attention kernels need no plan.
    torch.backends.cuda.enable_cudnn_sdp(False)
    return torch.device("cuda")
