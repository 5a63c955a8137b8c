"""The Triton kernels behind `nn/fast/kernels.py`.

Each program of an attention kernel handles one query of one head. The softmax is computed online
(Milakov and Gimelshein 2018): a program reads the keys block by block and, when it finds a greater
score, rescales its sums by exp(old maximum - new maximum).
"""

import triton
import triton.language as tl


@triton.jit
def self_attention_kernel(
    queries,
    new_keys,
    new_values,
    keys,
    values,
    slots,
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
    """Store the key and value of the current position, then attend to all positions up to it."""
    row = (tl.program_id(0) // HEADS).to(tl.int64)
    head = tl.program_id(0) % HEADS
    current = tl.load(position).to(tl.int32)
    column = head * WIDTH + tl.arange(0, WIDTH)
    query = tl.load(queries + row * query_stride + column).to(tl.float32) * scale
    new_key = tl.load(new_keys + row * key_stride + column)
    new_value = tl.load(new_values + row * value_stride + column)
    current_slot = tl.load(slots + row * capacity + current) * (HEADS * WIDTH)
    tl.store(keys + current_slot + column, new_key)
    tl.store(values + current_slot + column, new_value)

    # The sums start with the key and value of the current position.
    maximum = tl.sum(query * new_key.to(tl.float32), axis=0)
    total = tl.exp(maximum - maximum)
    context = new_value.to(tl.float32)
    for start in range(0, current, BLOCK):
        positions = start + tl.arange(0, BLOCK)
        valid = positions < current
        slot = tl.load(slots + row * capacity + positions, mask=valid, other=0)
        offset = slot[:, None] * (HEADS * WIDTH) + column[None, :]
        key = tl.load(keys + offset, mask=valid[:, None], other=0.0).to(tl.float32)
        value = tl.load(values + offset, mask=valid[:, None], other=0.0).to(tl.float32)
        scores = tl.where(valid, tl.sum(key * query[None, :], axis=1), float("-inf"))
        new_maximum = tl.maximum(maximum, tl.max(scores, axis=0))
        rescale = tl.exp(maximum - new_maximum)
        weights = tl.exp(scores - new_maximum)
        context = context * rescale + tl.sum(weights[:, None] * value, axis=0)
        total = total * rescale + tl.sum(weights, axis=0)
        maximum = new_maximum
    out_pointer = out + row * (HEADS * WIDTH) + column
    tl.store(out_pointer, (context / total).to(out.dtype.element_ty))


@triton.jit
def cross_attention_kernel(
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
    """Attend from one hypothesis to the keys of its source."""
    row = (tl.program_id(0) // HEADS).to(tl.int64)
    head = tl.program_id(0) % HEADS
    source = row // hypotheses
    column = tl.arange(0, WIDTH)
    query = tl.load(queries + row * query_stride + head * WIDTH + column).to(tl.float32) * scale
    keys += source * source_stride + head * head_stride
    values += source * value_source_stride + head * value_head_stride
    maximum = tl.sum(query, axis=0) * 0.0 - 1e30
    total = maximum * 0.0
    context = query * 0.0
    for start in range(0, length, BLOCK):
        position = start + tl.arange(0, BLOCK)
        visible = (
            tl.load(mask + source * mask_stride + position, mask=position < length, other=0) != 0
        )
        index = position[:, None].to(tl.int64)
        key_pointer = keys + index * key_stride + column[None, :]
        value_pointer = values + index * value_stride + column[None, :]
        key = tl.load(key_pointer, mask=visible[:, None], other=0.0).to(tl.float32)
        value = tl.load(value_pointer, mask=visible[:, None], other=0.0).to(tl.float32)
        scores = tl.where(visible, tl.sum(key * query[None, :], axis=1), float("-inf"))
        new_maximum = tl.maximum(maximum, tl.max(scores, axis=0))
        rescale = tl.exp(maximum - new_maximum)
        weights = tl.exp(scores - new_maximum)
        context = context * rescale + tl.sum(weights[:, None] * value, axis=0)
        total = total * rescale + tl.sum(weights, axis=0)
        maximum = new_maximum
    out_pointer = out + row * (HEADS * WIDTH) + head * WIDTH + column
    tl.store(out_pointer, (context / total).to(out.dtype.element_ty))


@triton.jit
def layer_norm_kernel(
    inputs,
    weight,
    bias,
    out,
    rows,
    width,
    epsilon,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Normalise ROWS rows at a time. Mean and variance are computed in float32."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    inside = (row < rows)[:, None] & (column < width)[None, :]
    offset = row[:, None] * width + column[None, :]
    values = tl.load(inputs + offset, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(values, axis=1) / width
    centred = tl.where(inside, values - mean[:, None], 0.0)
    variance = tl.sum(centred * centred, axis=1) / width
    normalised = centred * tl.rsqrt(variance + epsilon)[:, None]
    scale = tl.load(weight + column, mask=column < width, other=0.0).to(tl.float32)
    shift = tl.load(bias + column, mask=column < width, other=0.0).to(tl.float32)
    result = normalised * scale[None, :] + shift[None, :]
    tl.store(out + offset, result.to(out.dtype.element_ty), mask=inside)
