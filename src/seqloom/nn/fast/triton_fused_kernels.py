"""The Triton kernels behind `nn/fast/fused_functions.py`.

A gradient of a bias or of a layer normalisation is a sum over all rows of a tensor. Each program of a
kernel adds up some of the rows and stores a partial sum. The caller adds up the partial sums. Atomic
additions would need no partial sums, but their order, and so the result, would vary between runs.
"""

import triton
import triton.language as tl

ROUNDS: tl.constexpr = tl.constexpr(7)
"""Rounds of the random number generator Philox. With seven, it passes all tests of TestU01 (Salmon et
al. 2011)."""


@triton.jit
def dropout_mask_kernel(seed, out, count, threshold, BLOCK: tl.constexpr):
    """Store 1 for entries that dropout keeps and 0 for the others, for 8 · BLOCK entries.

    threshold: 2**16 times the probability of keeping an entry
    """
    column = tl.arange(0, BLOCK)
    block = tl.program_id(0).to(tl.int64)
    # 128 random bits, 16 for each of eight entries
    first, second, third, fourth = tl.randint4x(tl.load(seed), block * BLOCK + column, ROUNDS)
    for index in tl.static_range(8):
        if index < 2:
            word = first
        elif index < 4:
            word = second
        elif index < 6:
            word = third
        else:
            word = fourth
        kept = ((word >> (16 * (index % 2))) & 0xFFFF).to(tl.int32) < threshold
        place = (block * 8 + index) * BLOCK + column
        tl.store(out + place, kept.to(tl.uint8), mask=place < count)


@triton.jit
def embed_kernel(
    tokens,
    positions,
    table,
    position_table,
    mask,
    out,
    rows,
    width,
    dropout_scale,
    table_scale,
    HAS_POSITIONS: tl.constexpr,
    DROPS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute dropout(table[token] * table_scale + position_table[position]) for ROWS rows."""
    column = tl.arange(0, BLOCK)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    is_row = row < rows
    inside = is_row[:, None] & (column < width)[None, :]
    offset = row.to(tl.int64)[:, None] * width + column[None, :]
    token = tl.load(tokens + row, mask=is_row, other=0)
    place = token[:, None] * width + column[None, :]
    values = tl.load(table + place, mask=inside, other=0.0).to(tl.float32) * table_scale
    if HAS_POSITIONS:
        position = tl.load(positions + row, mask=is_row, other=0)
        place = position[:, None] * width + column[None, :]
        values += tl.load(position_table + place, mask=inside, other=0.0).to(tl.float32)
    if DROPS:
        kept = tl.load(mask + offset, mask=inside, other=0) != 0
        values = tl.where(kept, values * dropout_scale, 0.0)
    tl.store(out + offset, values.to(out.dtype.element_ty), mask=inside)


@triton.jit
def embed_gradient_kernel(
    gradient, mask, out, count, scale, DROPS: tl.constexpr, BLOCK: tl.constexpr
):
    """Compute the gradient of the vectors that `embed_kernel` read."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    values = tl.load(gradient + place, mask=inside, other=0.0).to(tl.float32) * scale
    if DROPS:
        values = tl.where(tl.load(mask + place, mask=inside, other=0) != 0, values, 0.0)
    tl.store(out + place, values, mask=inside)


@triton.jit
def add_norm_kernel(
    skip,
    inputs,
    bias,
    mask,
    norm_weight,
    norm_bias,
    stream,
    normalised,
    means,
    inverse_deviations,
    rows,
    width,
    dropout_scale,
    epsilon,
    ADDS: tl.constexpr,
    DROPS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute stream = skip + dropout(inputs + bias), and normalise it, for ROWS rows.

    Without ADDS, only normalise `skip`. Mean and variance are computed in float32.
    """
    column = tl.arange(0, BLOCK)
    is_column = column < width
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = (row < rows)[:, None] & is_column[None, :]
    offset = row.to(tl.int64)[:, None] * width + column[None, :]
    values = tl.load(skip + offset, mask=inside, other=0.0).to(tl.float32)
    if ADDS:
        added = tl.load(inputs + offset, mask=inside, other=0.0).to(tl.float32)
        added += tl.load(bias + column, mask=is_column, other=0.0).to(tl.float32)[None, :]
        if DROPS:
            kept = tl.load(mask + offset, mask=inside, other=0) != 0
            added = tl.where(kept, added * dropout_scale, 0.0)
        rounded = (values + added).to(stream.dtype.element_ty)
        tl.store(stream + offset, rounded, mask=inside)
        values = tl.where(inside, rounded.to(tl.float32), 0.0)
    mean = tl.sum(values, axis=1) / width
    centred = tl.where(inside, values - mean[:, None], 0.0)
    variance = tl.sum(centred * centred, axis=1) / width
    inverse = tl.rsqrt(variance + epsilon)
    tl.store(means + row, mean, mask=row < rows)
    tl.store(inverse_deviations + row, inverse, mask=row < rows)
    scale = tl.load(norm_weight + column, mask=is_column, other=0.0).to(tl.float32)
    shift = tl.load(norm_bias + column, mask=is_column, other=0.0).to(tl.float32)
    result = centred * inverse[:, None] * scale[None, :] + shift[None, :]
    tl.store(normalised + offset, result.to(normalised.dtype.element_ty), mask=inside)


@triton.jit
def add_norm_gradient_kernel(
    stream,
    norm_weight,
    means,
    inverse_deviations,
    norm_gradient,
    stream_gradient,
    mask,
    skip_gradient,
    input_gradient,
    sums,
    rows,
    width,
    dropout_scale,
    ADDS: tl.constexpr,
    DROPS: tl.constexpr,
    HAS_STREAM: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute the gradients of `add_norm_kernel`.

    norm_gradient:   gradient of the normalised stream
    stream_gradient: gradient of the stream; not read without HAS_STREAM
    skip_gradient:   result: gradient of `skip`
    input_gradient:  result: gradient of `inputs`; not written without DROPS, because it is then equal
                     to the gradient of `skip`
    sums:            result: (programs, 3, width) partial sums of the gradients of the weight and the
                     bias of the normalisation and of `bias`
    """
    column = tl.arange(0, BLOCK)
    is_column = column < width
    scale = tl.load(norm_weight + column, mask=is_column, other=0.0).to(tl.float32)
    weight_sum = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    shift_sum = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    bias_sum = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    for start in range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
        row = start + tl.arange(0, ROWS)
        is_row = row < rows
        inside = is_row[:, None] & is_column[None, :]
        offset = row.to(tl.int64)[:, None] * width + column[None, :]
        values = tl.load(stream + offset, mask=inside, other=0.0).to(tl.float32)
        incoming = tl.load(norm_gradient + offset, mask=inside, other=0.0).to(tl.float32)
        mean = tl.load(means + row, mask=is_row, other=0.0)
        inverse = tl.load(inverse_deviations + row, mask=is_row, other=0.0)
        normalised = tl.where(inside, (values - mean[:, None]) * inverse[:, None], 0.0)
        weight_sum += incoming * normalised
        shift_sum += incoming
        scaled = incoming * scale[None, :]
        along = tl.sum(scaled * normalised, axis=1) / width
        average = tl.sum(scaled, axis=1) / width
        result = (scaled - normalised * along[:, None] - average[:, None]) * inverse[:, None]
        if HAS_STREAM:
            result += tl.load(stream_gradient + offset, mask=inside, other=0.0).to(tl.float32)
        tl.store(skip_gradient + offset, result.to(skip_gradient.dtype.element_ty), mask=inside)
        if ADDS:
            if DROPS:
                kept = tl.load(mask + offset, mask=inside, other=0) != 0
                result = tl.where(kept, result * dropout_scale, 0.0)
                rounded = result.to(input_gradient.dtype.element_ty)
                tl.store(input_gradient + offset, rounded, mask=inside)
            bias_sum += tl.where(inside, result, 0.0)
    sums += tl.program_id(0) * 3 * width + column
    tl.store(sums, tl.sum(weight_sum, axis=0), mask=is_column)
    tl.store(sums + width, tl.sum(shift_sum, axis=0), mask=is_column)
    tl.store(sums + 2 * width, tl.sum(bias_sum, axis=0), mask=is_column)


@triton.jit
def relu_gradient_kernel(
    gradient, activated, out, sums, rows, width, scale, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """Compute the gradient before ReLU and dropout, whose output was `activated`.

    An entry has a gradient if the output is not zero. `scale` is the factor of dropout.

    sums: (programs, width) partial sums of the gradient of a bias before ReLU
    """
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_column = column < width
    total = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    for start in range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & is_column[None, :]
        offset = row.to(tl.int64)[:, None] * width + column[None, :]
        values = tl.load(gradient + offset, mask=inside, other=0.0).to(tl.float32)
        is_positive = tl.load(activated + offset, mask=inside, other=0.0).to(tl.float32) > 0
        values = tl.where(is_positive, values * scale, 0.0)
        tl.store(out + offset, values.to(out.dtype.element_ty), mask=inside)
        total += values
    tl.store(sums + tl.program_id(0) * width + column, tl.sum(total, axis=0), mask=is_column)


@triton.jit
def add_rows_kernel(sums, out, rows, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Add up partial sums: (rows, width) -> (width,)"""
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_column = column < width
    total = tl.zeros([ROWS, BLOCK], dtype=tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & is_column[None, :]
        total += tl.load(sums + row[:, None] * width + column[None, :], mask=inside, other=0.0)
    tl.store(out + column, tl.sum(total, axis=0), mask=is_column)


@triton.jit
def load_head(states, bias, stride, length, LENGTH: tl.constexpr, WIDTH: tl.constexpr):
    """Load the vectors of one head at all positions of a row, and add a bias: (LENGTH, WIDTH)

    states: address of the first vector
    stride: distance between two positions
    """
    position, column = tl.arange(0, LENGTH), tl.arange(0, WIDTH)
    inside = (position < length)[:, None]
    loaded = tl.load(states + position[:, None] * stride + column[None, :], mask=inside, other=0.0)
    shifted = loaded.to(tl.float32) + tl.load(bias + column).to(tl.float32)[None, :]
    return shifted.to(states.dtype.element_ty)


@triton.jit
def store_head(states, sums, values, stride, length, LENGTH: tl.constexpr, WIDTH: tl.constexpr):
    """Store vectors of one head at all positions of a row, and their sum over the positions."""
    position, column = tl.arange(0, LENGTH), tl.arange(0, WIDTH)
    inside = (position < length)[:, None]
    offset = position[:, None] * stride + column[None, :]
    tl.store(states + offset, values.to(states.dtype.element_ty), mask=inside)
    tl.store(sums + column, tl.sum(tl.where(inside, values, 0.0), axis=0))


@triton.jit
def visible_scores(
    query,
    key,
    query_ids,
    key_ids,
    queries_length,
    keys_length,
    scale,
    CAUSAL: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
):
    """Return attention scores in bits (QUERIES, KEYS). The score of a hidden key is -1e30.

    query_ids, key_ids: addresses of the ids of a row. A query attends to the keys with its id
    """
    target, source = tl.arange(0, QUERIES), tl.arange(0, KEYS)
    target_id = tl.load(query_ids + target, mask=target < queries_length, other=0).to(tl.int32)
    source_id = tl.load(key_ids + source, mask=source < keys_length, other=-1).to(tl.int32)
    scores = tl.dot(query, tl.trans(key)) * (scale * 1.4426950408889634)  # 1 / ln 2
    visible = target_id[:, None] == source_id[None, :]
    if CAUSAL:
        visible = visible & (source[None, :] <= target[:, None])
    return tl.where(visible, scores, -1e30)


@triton.jit
def attention_kernel(
    queries,
    keys,
    values,
    query_bias,
    key_bias,
    value_bias,
    query_ids,
    key_ids,
    out,
    normalisers,
    query_row_stride,
    query_stride,
    key_row_stride,
    key_stride,
    queries_length,
    keys_length,
    scale,
    CAUSAL: tl.constexpr,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
):
    """Attend from all positions of one row, in one head.

    normalisers: (B, H, T) log2 of the sum of 2**score over the keys
    """
    row = (tl.program_id(0) // HEADS).to(tl.int64)
    head = tl.program_id(0) % HEADS * WIDTH
    queries += row * query_row_stride + head
    keys += row * key_row_stride + head
    values += row * key_row_stride + head
    query = load_head(queries, query_bias + head, query_stride, queries_length, QUERIES, WIDTH)
    key = load_head(keys, key_bias + head, key_stride, keys_length, KEYS, WIDTH)
    value = load_head(values, value_bias + head, key_stride, keys_length, KEYS, WIDTH)
    scores = visible_scores(
        query,
        key,
        query_ids + row * queries_length,
        key_ids + row * keys_length,
        queries_length,
        keys_length,
        scale,
        CAUSAL,
        QUERIES,
        KEYS,
    )
    maximum = tl.max(scores, axis=1)
    weights = tl.exp2(scores - maximum[:, None])
    total = tl.sum(weights, axis=1)
    context = tl.dot(weights.to(value.dtype), value) / total[:, None]
    target, column = tl.arange(0, QUERIES), tl.arange(0, WIDTH)
    is_query = target < queries_length
    offset = (row * queries_length + target[:, None]) * (HEADS * WIDTH) + head + column[None, :]
    tl.store(out + offset, context.to(out.dtype.element_ty), mask=is_query[:, None])
    place = tl.program_id(0).to(tl.int64) * queries_length + target
    tl.store(normalisers + place, maximum + tl.log2(total), mask=is_query)


@triton.jit
def attention_gradient_kernel(
    queries,
    keys,
    values,
    query_bias,
    key_bias,
    value_bias,
    query_ids,
    key_ids,
    normalisers,
    gradient,
    query_gradient,
    key_gradient,
    value_gradient,
    sums,
    query_row_stride,
    query_stride,
    key_row_stride,
    key_stride,
    queries_length,
    keys_length,
    scale,
    CAUSAL: tl.constexpr,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
):
    """Compute the gradients of queries, keys and values of one row and head, and of the biases.

    sums: (B, 3, D) sums of the three gradients over the positions of a row
    """
    row = (tl.program_id(0) // HEADS).to(tl.int64)
    head = tl.program_id(0) % HEADS * WIDTH
    query_offset = row * query_row_stride + head
    key_offset = row * key_row_stride + head
    query = load_head(
        queries + query_offset, query_bias + head, query_stride, queries_length, QUERIES, WIDTH
    )
    key = load_head(keys + key_offset, key_bias + head, key_stride, keys_length, KEYS, WIDTH)
    value = load_head(values + key_offset, value_bias + head, key_stride, keys_length, KEYS, WIDTH)
    target, column = tl.arange(0, QUERIES), tl.arange(0, WIDTH)
    scores = visible_scores(
        query,
        key,
        query_ids + row * queries_length,
        key_ids + row * keys_length,
        queries_length,
        keys_length,
        scale,
        CAUSAL,
        QUERIES,
        KEYS,
    )
    is_query = target < queries_length
    place = tl.program_id(0).to(tl.int64) * queries_length + target
    normaliser = tl.load(normalisers + place, mask=is_query, other=0.0)
    weights = tl.exp2(scores - normaliser[:, None])
    offset = (row * queries_length + target[:, None]) * (HEADS * WIDTH) + head + column[None, :]
    incoming = tl.load(gradient + offset, mask=is_query[:, None], other=0.0)
    sums += row * 3 * HEADS * WIDTH + head
    store_head(
        value_gradient + key_offset,
        sums + 2 * HEADS * WIDTH,
        tl.dot(tl.trans(weights.to(value.dtype)), incoming),
        key_stride,
        keys_length,
        KEYS,
        WIDTH,
    )
    weight_gradient = tl.dot(incoming, tl.trans(value))
    average = tl.sum(weights * weight_gradient, axis=1)
    score_gradient = (weights * (weight_gradient - average[:, None]) * scale).to(key.dtype)
    store_head(
        query_gradient + query_offset,
        sums,
        tl.dot(score_gradient, key),
        query_stride,
        queries_length,
        QUERIES,
        WIDTH,
    )
    store_head(
        key_gradient + key_offset,
        sums + HEADS * WIDTH,
        tl.dot(tl.trans(score_gradient), query),
        key_stride,
        keys_length,
        KEYS,
        WIDTH,
    )


@triton.jit
def cross_entropy_kernel(
    logits,
    targets,
    losses,
    vocabulary,
    excluded,
    padding,
    smoothing,
    BLOCK: tl.constexpr,
):
    """Compute the cross-entropy of one position and overwrite its logits with their gradient.

    The first `excluded` tokens have probability 0. Positions whose target is `padding` have no loss.
    """
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(targets + row)
    is_real = target != padding
    logits += row * vocabulary
    # Read here, because later another warp may already have overwritten it.
    target_logit = tl.load(logits + tl.where(is_real, target, 0)).to(tl.float32)
    maximum = -1e30
    total = 0.0
    logit_sum = 0.0
    for start in range(0, vocabulary, BLOCK):
        token = start + tl.arange(0, BLOCK)
        possible = (token >= excluded) & (token < vocabulary)
        values = tl.load(logits + token, mask=possible, other=-1e30).to(tl.float32)
        new_maximum = tl.maximum(maximum, tl.max(values, axis=0))
        exponentials = tl.where(possible, tl.exp(values - new_maximum), 0.0)
        total = total * tl.exp(maximum - new_maximum) + tl.sum(exponentials, axis=0)
        logit_sum += tl.sum(tl.where(possible, values, 0.0), axis=0)
        maximum = new_maximum
    normaliser = maximum + tl.log(total)
    share = smoothing / (vocabulary - excluded)
    loss = normaliser - (1 - smoothing) * target_logit - share * logit_sum
    tl.store(losses + row, tl.where(is_real, loss, 0.0))
    for start in range(0, vocabulary, BLOCK):
        token = start + tl.arange(0, BLOCK)
        inside = token < vocabulary
        values = tl.load(logits + token, mask=inside, other=0.0).to(tl.float32)
        gradient = tl.exp(values - normaliser) - share
        gradient = tl.where(token == target, gradient - (1 - smoothing), gradient)
        gradient = tl.where((token >= excluded) & is_real, gradient, 0.0)
        tl.store(logits + token, gradient.to(logits.dtype.element_ty), mask=inside)
