"""Where the arithmetic happens."""

import torch


def best_device() -> torch.device:
    """A GPU if there is one."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    # cuDNN's attention makes a new plan for every shape it has not seen, which takes longer than
    # ten steps; torch's other kernels need none.
    torch.backends.cuda.enable_cudnn_sdp(False)
    return torch.device("cuda")
