"""Preparations that make many calls of `MultiHeadAttention.step` and `.step_cross` faster."""

import torch
from torch import Tensor, nn

from seqloom.nn.cache import KeysValues
from seqloom.nn.fast.linear import PackedLinear
from seqloom.nn.fast.repeated_attention import share_gradient
from seqloom.nn.multihead import MultiHeadAttention


def joined_projections(attention: MultiHeadAttention, static: bool) -> PackedLinear | None:
    """Join the query, key and value projections of self-attention into one product, for `step`.

    Return None if one of them is not a linear layer. Without `static`, also return None if
    `PackedLinearCache` does not pack their weights (on a GPU, or if they need a gradient).

    static: if the weights are not packed, concatenate them. This is faster for captured steps,
            because the concatenation is done once, and each separate product would be a kernel
            launch per step
    """
    layers = [attention.to_query, attention.to_key, attention.to_value]
    linears = [layer for layer in layers if isinstance(layer, nn.Linear)]
    if len(linears) < len(layers):
        return None
    packed = attention.packed_projections.get(linears)
    return packed or (PackedLinear.of(linears, transpose=False) if static else None)


def prepare_mask(attention: MultiHeadAttention, mask: Tensor, dtype: torch.dtype) -> Tensor | None:
    """Convert a mask (B, 1, 1, S) to the form that is fastest for `step_cross` without weights.

    On a GPU, or if no fused kernel is used, return the mask itself. Otherwise return None if all
    keys are visible, or else a tensor to add to the scores, with 0 for visible and -inf for hidden
    keys. The fused kernel would make this conversion at every step.
    """
    if mask.is_cuda or not attention.is_plain_softmax:
        return mask
    if bool(mask.all()):
        return None
    additive = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return additive.masked_fill_(~mask, float("-inf"))


def prepare_steps(
    attention: MultiHeadAttention, memory: KeysValues, mask: Tensor, steps: int
) -> KeysValues:
    """Return keys and values whose gradient is computed once for all calls of `step_cross`.

    This is done for a plain softmax in training on a CPU. Otherwise return `memory` itself. See
    `fast/repeated_attention.py`.

    steps: maximum number of calls
    """
    if not attention.is_plain_softmax:
        return memory
    additive = prepare_mask(attention, mask, memory.keys.dtype)
    return share_gradient(memory, additive, 1 / attention.score.divisor, steps)
