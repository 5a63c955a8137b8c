"""Softmax and selection of the best tokens on a GPU, with Triton kernels.

A step of a search needs few log-probabilities: those of the best tokens of each row. The plain
version computes all of them in float32, then sorts them. Here one kernel computes the logarithm of
the denominator of each softmax, and another kernel finds the best logits. Each kernel reads the
logits once, in their own precision.
"""

import importlib
from typing import Any

import torch
from torch import Tensor

from seqloom.nn.fast.dispatch import has_triton

MAX_VOCABULARY = 2**15
"""Maximum number of columns of `top_k_of_rows`, whose kernel keeps a whole row in registers."""
MAX_COUNT = 16
"""Maximum number of values per row that `top_k_of_rows` finds."""
COLUMNS_PER_WARP = 1024
"""Number of columns that a warp (32 threads) of a kernel program handles."""


def can_use_kernels(logits: Tensor, count: int) -> bool:
    """Return True if the kernels can run and support logits (R, V) and `count` values per row."""
    return (
        has_triton(logits)
        and logits.dtype in (torch.float32, torch.bfloat16, torch.float16)
        and logits.stride(1) == 1
        and count <= min(MAX_COUNT, logits.shape[1])
        and logits.shape[1] <= MAX_VOCABULARY
    )


def _kernels() -> Any:
    """Import the module with the kernels. This happens on first use, because it needs Triton."""
    return importlib.import_module("seqloom.decoding.fast.triton_kernels")


def log_sum_exp(logits: Tensor) -> Tensor:
    """Return log(sum of exp(logit)) of each row in float32: (R, V) -> (R,)"""
    rows, columns = logits.shape
    out = torch.empty(rows, dtype=torch.float32, device=logits.device)
    _kernels().log_sum_exp_kernel[(rows,)](
        logits, out, logits.stride(0), columns, BLOCK=2048, num_warps=4
    )
    return out


def top_k_of_rows(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the `count` largest values of each row in float32, largest first, and their columns.

    (R, V) -> (R, C), (R, C); C = count. If a row has fewer than C finite values, the remaining
    values are -inf, and their columns have no meaning.
    """
    rows, columns = values.shape
    best = torch.empty(rows, count, dtype=torch.float32, device=values.device)
    best_columns = torch.empty(rows, count, dtype=torch.long, device=values.device)
    block = 1 << (columns - 1).bit_length()  # the next power of two
    _kernels().top_k_kernel[(rows,)](
        *(values, best, best_columns, values.stride(0), columns),
        COUNT=count,
        BLOCK=block,
        num_warps=min(16, max(1, block // COLUMNS_PER_WARP)),
    )
    return best, best_columns
