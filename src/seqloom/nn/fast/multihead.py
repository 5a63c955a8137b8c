"""Preparations that make many calls of `MultiHeadAttention.step` and `.step_cross` faster."""

import torch
from torch import Tensor, nn

from seqloom.nn.cache import KeysValues
from seqloom.nn.fast.linear import PackedLinear
from seqloom.nn.fast.repeated_attention import share_gradient
from seqloom.nn.multihead import MultiHeadAttention


def joined_projections(attention: MultiHeadAttention, static: bool) -> PackedLinear | None:
    """The query, key and value projections of self-attention as one product, for `step`.

    Returns None if they are not three linear layers, and if their weights must not be packed.

    static: concatenate the weights anyway. This is faster if the steps are captured, because the
            concatenation is done once and each product of a step costs a kernel launch
    """
    layers = [attention.to_query, attention.to_key, attention.to_value]
    linears = [layer for layer in layers if isinstance(layer, nn.Linear)]
    if len(linears) < len(layers):
        return None
    packed = attention.packed_projections.get(linears)
    return packed or (PackedLinear.of(linears, transpose=False) if static else None)


def prepare_mask(attention: MultiHeadAttention, mask: Tensor, dtype: torch.dtype) -> Tensor | None:
    """A mask (B, 1, 1, S) in the form that `step_cross` without weights processes fastest.

    On a CPU, None if all keys are visible, otherwise numbers to add to the scores: 0 or -inf. The
    fused kernel would convert the mask at every step.
    """
    if mask.is_cuda or not attention.is_plain_softmax:
        return mask
    if bool(mask.all()):
        return None
    visible = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return visible.masked_fill_(~mask, float("-inf"))


def prepare_steps(
    attention: MultiHeadAttention, memory: KeysValues, mask: Tensor, steps: int
) -> KeysValues:
    """Keys and values for at most `steps` calls of `step_cross`, which share their gradient.

    Only for training on a CPU; otherwise `memory` itself. See `fast/repeated_attention.py`.
    """
    if not attention.is_plain_softmax:
        return memory
    additive = prepare_mask(attention, mask, memory.keys.dtype)
    return share_gradient(memory, additive, 1 / attention.score.divisor, steps)
