"""Prepares weights, masks, keys and values once, so that single steps of attention run faster."""

import torch
from torch import Tensor, nn

from seqloom.nn.fast.linear import PackedLinear
from seqloom.nn.fast.repeated_attention import share_gradient
from seqloom.nn.key_value_cache import KeysValues
from seqloom.nn.multihead import MultiHeadAttention


def joined_projections(attention: MultiHeadAttention, static: bool) -> PackedLinear | None:
    """Join the query, key and value projections into one layer, for `MultiHeadAttention.step`.

    Return None if one of the projections is not a linear layer. If the weights are on a GPU or need
    a gradient, they are joined only if `static` is True; otherwise return None.

    static: True if the step will be captured as a CUDA graph or compiled
    """
    layers = [attention.to_query, attention.to_key, attention.to_value]
    linears = [layer for layer in layers if isinstance(layer, nn.Linear)]
    if len(linears) < len(layers):
        return None
    packed = attention.packed_projections.get(linears)
    return packed or (PackedLinear.of(linears, transpose=False) if static else None)


def prepare_mask(attention: MultiHeadAttention, mask: Tensor, dtype: torch.dtype) -> Tensor | None:
    """Convert a mask (B, 1, 1, S) to the fastest form for attention steps that return no weights.

    - On a GPU, or if no fused kernel is used, return the mask itself.
    - Otherwise, if all keys are visible, return None.
    - Otherwise return a tensor to add to the scores, with 0 for visible and -inf for hidden keys.
      Without this conversion, the fused kernel would convert the mask at every step.
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
    """Return keys and values for a decoder that attends to the source step by step.

    The backward pass computes their gradient once, not once per step. This is possible only in
    training on a CPU, with a softmax of dot products and without dropout of the weights. In other
    cases, return `memory` unchanged.

    memory: keys and values of the source
    steps:  maximum number of steps
    """
    if not attention.is_plain_softmax:
        return memory
    additive = prepare_mask(attention, mask, memory.keys.dtype)
    return share_gradient(memory, additive, 1 / attention.score.divisor, steps)
