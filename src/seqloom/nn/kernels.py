"""Attention of one position on a GPU: kernels that read every key and value once.

One query meets a few dozen keys. The general kernels are made for hundreds of queries and leave
most of the machine idle with one; here each query of each head is a small program of its own,
which reads its keys and values where they lie and keeps everything else in registers.

Without Triton, on other devices and for widths that are no power of two, `can_run` says no, and
`nn/multihead.py` computes the same from general parts.
"""

import importlib
import importlib.util
import os
from typing import Any

import torch
from torch import Tensor

from seqloom.nn.cache import KeysValues, StaticCache

BLOCK = 16
"""Keys read at a time."""
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
"""Triton's own way to run kernels without a GPU: slow, for tests."""


def _kernels() -> Any:
    """The module with the kernels, imported where Triton is and only when they are first run."""
    return importlib.import_module("seqloom.nn.triton_kernels")


def can_run(queries: Tensor, values: Tensor) -> bool:
    """Can these kernels compute it? queries (R, H, …, D), values (·, H, ·, Dv)

    They know no gradients: where one is wanted, as in training on what was rolled out, they cannot.
    """
    width = queries.shape[-1]
    learning = torch.is_grad_enabled() and (queries.requires_grad or values.requires_grad)
    return (
        (queries.is_cuda or INTERPRETED)
        and not learning
        and values.stride(-1) == 1
        and importlib.util.find_spec("triton") is not None
        and queries.dtype in (torch.float32, torch.bfloat16, torch.float16)
        and queries.dtype == values.dtype
        and values.shape[-1] == width
        and 16 <= width <= 256
        and width & (width - 1) == 0
    )


def look_back(queries: Tensor, new: KeysValues, past: StaticCache, scale: float) -> Tensor:
    """One position looks at itself and all before it, and enters its key and value.

    queries, keys and values (R, H, 1, D), with D last in memory -> (R, H, D)
    """
    rows, heads, _, width = queries.shape
    out = queries.new_empty(rows, heads, width)
    keys, values = past.store
    places = past.ancestry.places
    _kernels().look_back_kernel[(rows * heads,)](
        *(queries, new.keys, new.values, keys, values, places, past.position, out),
        *(queries.stride(0), new.keys.stride(0), new.values.stride(0), places.shape[1], scale),
        HEADS=heads,
        WIDTH=width,
        BLOCK=BLOCK,
        num_warps=1,
    )
    return out


def look_across(queries: Tensor, memory: KeysValues, mask: Tensor, scale: float) -> Tensor:
    """Each of the R / B hypotheses of a source looks at its keys.

    queries (R, H, D), keys and values (B, H, S, D), mask (B, 1, 1, S) -> (R, H, D)
    """
    rows, heads, width = queries.shape
    keys, values = memory.keys, memory.values
    assert keys.stride(3) == values.stride(3) == queries.stride(2) == mask.stride(3) == 1
    assert queries.stride(1) == width
    out = queries.new_empty(rows, heads, width)
    _kernels().look_across_kernel[(rows * heads,)](
        *(queries, keys, values, mask.view(torch.uint8), out),
        *(queries.stride(0), *keys.stride()[:3], *values.stride()[:3], mask.stride(0)),
        *(rows // len(keys), keys.shape[2], scale),
        HEADS=heads,
        WIDTH=width,
        BLOCK=BLOCK,
        num_warps=1,
    )
    return out
