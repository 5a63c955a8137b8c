"""Attention of one query position, and layer normalisation, on a GPU with Triton kernels.

torch's general attention kernels are made for hundreds of queries. With a single query they leave
most of a GPU idle. Here one small kernel program handles one query of one head. It reads keys and
values directly from the cache and keeps everything else in registers. torch's layer normalisation
uses a block of threads per row, which is too much for the width of a Transformer.

`can_use_kernels` and `can_use_layer_norm` in `fast/dispatch.py` decide when these kernels run.
Among other things they need Triton and a GPU, and attention needs a head width that is a power of
two.
"""

import importlib
from typing import Any

import torch
from torch import Tensor, nn

from seqloom.nn.fast.dispatch import can_use_layer_norm
from seqloom.nn.fast.static_cache import StaticCache
from seqloom.nn.key_value_cache import KeysValues

BLOCK = 16
"""Number of keys that a kernel program reads at a time."""
NORM_ELEMENTS = 2048
"""Number of elements that a program of layer normalisation handles, if its rows are shorter."""


def _kernels() -> Any:
    """Import the module with the kernels. This happens on first use, because it needs Triton."""
    return importlib.import_module("seqloom.nn.fast.triton_kernels")


def self_attention_step(
    queries: Tensor, new: KeysValues, cache: StaticCache, scale: float
) -> Tensor:
    """Store the keys and values of the current position, then attend to all positions up to it.

    queries, keys and values (R, H, 1, D) -> (R, H, D)
    """
    rows, heads, _, width = queries.shape
    queries, new_keys, new_values = map(_with_adjacent_heads, (queries, new.keys, new.values))
    out = queries.new_empty(rows, heads, width)
    keys, values = cache.store
    slots = cache.table.slots
    _kernels().self_attention_kernel[(rows * heads,)](
        *(queries, new_keys, new_values, keys, values, slots, cache.position, out),
        *(queries.stride(0), new_keys.stride(0), new_values.stride(0), slots.shape[1], scale),
        HEADS=heads,
        WIDTH=width,
        BLOCK=BLOCK,
        num_warps=1,
    )
    return out


def _with_adjacent_heads(part: Tensor) -> Tensor:
    """Return a tensor (R, H, 1, D) in which the H · D entries of a row are adjacent in memory.

    The kernel needs this. The keys of `BilinearScore` for example have another layout.
    """
    width = part.shape[3]
    return part if (part.stride(1), part.stride(3)) == (width, 1) else part.contiguous()


def cross_attention_step(queries: Tensor, memory: KeysValues, mask: Tensor, scale: float) -> Tensor:
    """Attend from every hypothesis to the keys of its source. A source has R / B hypotheses.

    queries (R, H, D), keys and values (B, H, S, D), mask (B, 1, 1, S) -> (R, H, D)
    """
    rows, heads, width = queries.shape
    keys, values = memory.keys, memory.values
    assert keys.stride(3) == values.stride(3) == queries.stride(2) == mask.stride(3) == 1
    assert queries.stride(1) == width
    out = queries.new_empty(rows, heads, width)
    _kernels().cross_attention_kernel[(rows * heads,)](
        *(queries, keys, values, mask.view(torch.uint8), out),
        *(queries.stride(0), *keys.stride()[:3], *values.stride()[:3], mask.stride(0)),
        *(rows // len(keys), keys.shape[2], scale),
        HEADS=heads,
        WIDTH=width,
        BLOCK=BLOCK,
        num_warps=1,
    )
    return out


def layer_norm(inputs: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    """Layer normalisation over the last dimension of a contiguous tensor: (…, D) -> (…, D)"""
    width = inputs.shape[-1]
    rows = inputs.numel() // width
    out = torch.empty_like(inputs)
    block = 1 << (width - 1).bit_length()  # the next power of two
    rows_per_program = max(1, NORM_ELEMENTS // block)
    _kernels().layer_norm_kernel[(-(-rows // rows_per_program),)](
        *(inputs, weight, bias, out, rows, width, epsilon),
        ROWS=rows_per_program,
        BLOCK=block,
        num_warps=4,
    )
    return out


class LayerNorm(nn.LayerNorm):
    """A torch.nn.LayerNorm over the last dimension that uses a Triton kernel where it can."""

    def __init__(self, width: int) -> None:
        super().__init__(width)

    def forward(self, inputs: Tensor) -> Tensor:
        if can_use_layer_norm(inputs, self.weight):
            return layer_norm(inputs, self.weight, self.bias, self.eps)
        return super().forward(inputs)
