"""The kernels behind `nn/kernels.py`, in Triton. One program is one query of one head.

Weights are the softmax of scores, summed up as keys come along: when a greater score is met, all
that was summed before shrinks by exp(old greatest - new greatest).
"""

import triton
import triton.language as tl


@triton.jit
def look_back_kernel(
    queries,
    new_keys,
    new_values,
    keys,
    values,
    places,
    position,
    out,
    query_stride,
    key_stride,
    value_stride,
    capacity,
    scale,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One position looks at itself and all before it, and enters its key and value."""
    row = (tl.program_id(0) // HEADS).to(tl.int64)
    head = tl.program_id(0) % HEADS
    here = tl.load(position).to(tl.int32)
    column = head * WIDTH + tl.arange(0, WIDTH)
    query = tl.load(queries + row * query_stride + column).to(tl.float32) * scale
    own_key = tl.load(new_keys + row * key_stride + column)
    own_value = tl.load(new_values + row * value_stride + column)
    own = tl.load(places + row * capacity + here) * (HEADS * WIDTH)
    tl.store(keys + own + column, own_key)
    tl.store(values + own + column, own_value)

    # The position itself is the first key that is met.
    greatest = tl.sum(query * own_key.to(tl.float32), axis=0)
    total = tl.exp(greatest - greatest)
    context = own_value.to(tl.float32)
    for start in range(0, here, BLOCK):
        earlier = start + tl.arange(0, BLOCK)
        there = earlier < here
        place = tl.load(places + row * capacity + earlier, mask=there, other=0)
        at = place[:, None] * (HEADS * WIDTH) + column[None, :]
        key = tl.load(keys + at, mask=there[:, None], other=0.0).to(tl.float32)
        value = tl.load(values + at, mask=there[:, None], other=0.0).to(tl.float32)
        scores = tl.where(there, tl.sum(key * query[None, :], axis=1), float("-inf"))
        greater = tl.maximum(greatest, tl.max(scores, axis=0))
        shrink = tl.exp(greatest - greater)
        weights = tl.exp(scores - greater)
        context = context * shrink + tl.sum(weights[:, None] * value, axis=0)
        total = total * shrink + tl.sum(weights, axis=0)
        greatest = greater
    at_out = out + row * (HEADS * WIDTH) + column
    tl.store(at_out, (context / total).to(out.dtype.element_ty))


@triton.jit
def look_across_kernel(
    queries,
    keys,
    values,
    mask,
    out,
    query_stride,
    source_stride,
    head_stride,
    key_stride,
    value_source_stride,
    value_head_stride,
    value_stride,
    mask_stride,
    hypotheses,
    length,
    scale,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One hypothesis looks at the keys of its source."""
    row = (tl.program_id(0) // HEADS).to(tl.int64)
    head = tl.program_id(0) % HEADS
    source = row // hypotheses
    lane = tl.arange(0, WIDTH)
    query = tl.load(queries + row * query_stride + head * WIDTH + lane).to(tl.float32) * scale
    keys += source * source_stride + head * head_stride
    values += source * value_source_stride + head * value_head_stride
    greatest = tl.sum(query, axis=0) * 0.0 - 1e30
    total = greatest * 0.0
    context = query * 0.0
    for start in range(0, length, BLOCK):
        position = start + tl.arange(0, BLOCK)
        seen = tl.load(mask + source * mask_stride + position, mask=position < length, other=0) != 0
        place = position[:, None].to(tl.int64)
        at_key = keys + place * key_stride + lane[None, :]
        at_value = values + place * value_stride + lane[None, :]
        key = tl.load(at_key, mask=seen[:, None], other=0.0).to(tl.float32)
        value = tl.load(at_value, mask=seen[:, None], other=0.0).to(tl.float32)
        scores = tl.where(seen, tl.sum(key * query[None, :], axis=1), float("-inf"))
        greater = tl.maximum(greatest, tl.max(scores, axis=0))
        shrink = tl.exp(greatest - greater)
        weights = tl.exp(scores - greater)
        context = context * shrink + tl.sum(weights[:, None] * value, axis=0)
        total = total * shrink + tl.sum(weights, axis=0)
        greatest = greater
    at_out = out + row * (HEADS * WIDTH) + head * WIDTH + lane
    tl.store(at_out, (context / total).to(out.dtype.element_ty))
