"""The Triton kernels behind `nn/fast/fused_functions.py`.

A gradient of a bias or of a layer normalisation is a sum over all rows of a tensor. Each program of a
kernel adds up some of the rows and stores a partial sum. The caller adds up the partial sums. Atomic
additions would need no partial sums, but their order, and so the result, would vary between runs.

Triton compiles a kernel separately for integer arguments that are 1 or multiples of 16.
`do_not_specialize` prevents this.
"""

import triton
import triton.language as tl

ROUNDS: tl.constexpr = tl.constexpr(7)
"""Rounds of the random number generator Philox. With seven, it passes all tests of TestU01 (Salmon et
al. 2011)."""

IMPOSSIBLE: tl.constexpr = tl.constexpr(-1e30)
"""Replaces a logit of -inf. The difference of two infinities would be NaN."""


@triton.jit
def kept_entries(seed, number, threshold, first_row, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Return True for the entries that a dropout keeps: (ROWS, BLOCK)

    Backward calls this function again with the same arguments, so the mask is not stored.

    seed:      address of the seed, which is drawn once per forward pass of an encoder or a decoder
    number:    number of the dropout
    threshold: 2**16 times the probability of keeping an entry
    first_row: the first of the ROWS rows
    """
    row, group = first_row + tl.arange(0, ROWS), tl.arange(0, BLOCK // 8)
    counter = row[:, None] * (BLOCK // 8) + group[None, :]
    zero = counter * 0
    # 128 random bits, 16 for each of eight entries
    first, second, third, fourth = tl.philox(
        tl.load(seed), counter, zero + number, zero, zero, ROUNDS
    )
    low = tl.join(
        tl.join(first & 0xFFFF, second & 0xFFFF), tl.join(third & 0xFFFF, fourth & 0xFFFF)
    )
    high = tl.join(tl.join(first >> 16, second >> 16), tl.join(third >> 16, fourth >> 16))
    drawn = tl.reshape(tl.join(low, high), [ROWS, BLOCK])
    return drawn.to(tl.int32) < threshold


@triton.jit(do_not_specialize=["number"])
def embed_kernel(
    tokens,
    positions,
    table,
    position_table,
    out,
    rows,
    width,
    table_scale,
    seed,
    number,
    threshold,
    dropout_scale,
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
        kept = kept_entries(seed, number, threshold, tl.program_id(0) * ROWS, ROWS, BLOCK)
        values = tl.where(kept, values * dropout_scale, 0.0)
    tl.store(out + offset, values.to(out.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["number"])
def embed_gradient_kernel(
    gradient,
    out,
    rows,
    width,
    table_scale,
    seed,
    number,
    threshold,
    dropout_scale,
    DROPS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute the gradient of the vectors that `embed_kernel` read, for ROWS rows."""
    column = tl.arange(0, BLOCK)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = (row < rows)[:, None] & (column < width)[None, :]
    offset = row.to(tl.int64)[:, None] * width + column[None, :]
    values = tl.load(gradient + offset, mask=inside, other=0.0).to(tl.float32) * table_scale
    if DROPS:
        kept = kept_entries(seed, number, threshold, tl.program_id(0) * ROWS, ROWS, BLOCK)
        values = tl.where(kept, values * dropout_scale, 0.0)
    tl.store(out + offset, values, mask=inside)


@triton.jit(do_not_specialize=["number"])
def add_norm_kernel(
    skip,
    inputs,
    bias,
    norm_weight,
    norm_bias,
    stream,
    normalised,
    means,
    inverse_deviations,
    epsilon,
    rows,
    width,
    seed,
    number,
    threshold,
    dropout_scale,
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
            kept = kept_entries(seed, number, threshold, tl.program_id(0) * ROWS, ROWS, BLOCK)
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
def load_norm_rows(
    stream,
    means,
    inverse_deviations,
    norm_gradient,
    stream_gradient,
    first_row,
    rows,
    width,
    HAS_STREAM: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Load the inputs of `add_norm_gradient_kernel` for ROWS rows, from `first_row` on."""
    column = tl.arange(0, BLOCK)
    row = first_row + tl.arange(0, ROWS)
    is_row = row < rows
    inside = is_row[:, None] & (column < width)[None, :]
    offset = row.to(tl.int64)[:, None] * width + column[None, :]
    values = tl.load(stream + offset, mask=inside, other=0.0)
    incoming = tl.load(norm_gradient + offset, mask=inside, other=0.0)
    outer = incoming
    if HAS_STREAM:
        outer = tl.load(stream_gradient + offset, mask=inside, other=0.0)
    mean = tl.load(means + row, mask=is_row, other=0.0)
    inverse = tl.load(inverse_deviations + row, mask=is_row, other=0.0)
    return values, incoming, outer, mean, inverse


@triton.jit(do_not_specialize=["number"])
def add_norm_gradient_kernel(
    stream,
    norm_weight,
    means,
    inverse_deviations,
    norm_gradient,
    stream_gradient,
    skip_gradient,
    input_gradient,
    sums,
    rows,
    width,
    seed,
    number,
    threshold,
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
    first_row, step = tl.program_id(0) * ROWS, tl.num_programs(0) * ROWS
    # The next rows are loaded before the current ones are used, so that the program waits less.
    values, incoming, outer, mean, inverse = load_norm_rows(
        stream,
        means,
        inverse_deviations,
        norm_gradient,
        stream_gradient,
        first_row,
        rows,
        width,
        HAS_STREAM,
        ROWS,
        BLOCK,
    )
    for start in range(first_row, rows, step):
        next_values, next_incoming, next_outer, next_mean, next_inverse = load_norm_rows(
            stream,
            means,
            inverse_deviations,
            norm_gradient,
            stream_gradient,
            start + step,
            rows,
            width,
            HAS_STREAM,
            ROWS,
            BLOCK,
        )
        row = start + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & is_column[None, :]
        offset = row.to(tl.int64)[:, None] * width + column[None, :]
        gradient = incoming.to(tl.float32)
        centred = (values.to(tl.float32) - mean[:, None]) * inverse[:, None]
        normalised = tl.where(inside, centred, 0.0)
        weight_sum += gradient * normalised
        shift_sum += gradient
        scaled = gradient * scale[None, :]
        along = tl.sum(scaled * normalised, axis=1) / width
        average = tl.sum(scaled, axis=1) / width
        result = (scaled - normalised * along[:, None] - average[:, None]) * inverse[:, None]
        if HAS_STREAM:
            result += outer.to(tl.float32)
        tl.store(skip_gradient + offset, result.to(skip_gradient.dtype.element_ty), mask=inside)
        if ADDS:
            if DROPS:
                kept = kept_entries(seed, number, threshold, start, ROWS, BLOCK)
                result = tl.where(kept, result * dropout_scale, 0.0)
                rounded = result.to(input_gradient.dtype.element_ty)
                tl.store(input_gradient + offset, rounded, mask=inside)
            bias_sum += tl.where(inside, result, 0.0)
        values, incoming, outer = next_values, next_incoming, next_outer
        mean, inverse = next_mean, next_inverse
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
def store_head(states, values, stride, length, LENGTH: tl.constexpr, WIDTH: tl.constexpr):
    """Store vectors of one head at all positions of a row."""
    position, column = tl.arange(0, LENGTH), tl.arange(0, WIDTH)
    offset = position[:, None] * stride + column[None, :]
    inside = (position < length)[:, None]
    tl.store(states + offset, values.to(states.dtype.element_ty), mask=inside)


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
    # Queries and keys after the last one have different ids, so no key is visible to such a query.
    target_id = tl.load(query_ids + target, mask=target < queries_length, other=-2).to(tl.int32)
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

    The bias of the keys has no gradient: it adds the same number to all scores of a query, which does
    not change the softmax.

    sums: (B, 3, D) gradients of the three biases for each row
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
    sums += row * 3 * HEADS * WIDTH + head + column
    result = tl.dot(tl.trans(weights.to(value.dtype)), incoming)
    store_head(value_gradient + key_offset, result, key_stride, keys_length, KEYS, WIDTH)
    is_key = (tl.arange(0, KEYS) < keys_length)[:, None]
    tl.store(sums + 2 * HEADS * WIDTH, tl.sum(tl.where(is_key, result, 0.0), axis=0))
    weight_gradient = tl.dot(incoming, tl.trans(value))
    average = tl.sum(weights * weight_gradient, axis=1)
    score_gradient = (weights * (weight_gradient - average[:, None]) * scale).to(key.dtype)
    result = tl.dot(score_gradient, key)
    store_head(query_gradient + query_offset, result, query_stride, queries_length, QUERIES, WIDTH)
    tl.store(sums, tl.sum(tl.where(is_query[:, None], result, 0.0), axis=0))
    result = tl.dot(tl.trans(score_gradient), query)
    store_head(key_gradient + key_offset, result, key_stride, keys_length, KEYS, WIDTH)
    tl.store(sums + HEADS * WIDTH, tl.zeros([WIDTH], dtype=tl.float32))


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


@triton.jit
def load_logits(logits, token, vocabulary):
    """Load logits of one position in float32.

    The logit of an impossible token, which is -inf, becomes IMPOSSIBLE. This is also the logit of tokens
    outside the vocabulary.
    """
    loaded = tl.load(logits + token, mask=token < vocabulary, other=-float("inf"))
    values = loaded.to(tl.float32)
    return tl.where(values == -float("inf"), IMPOSSIBLE, values)  # NaN remains NaN


@triton.jit
def log_normaliser(logits, vocabulary, BLOCK: tl.constexpr):
    """Return log Σ exp(logit), Σ logit and the number of terms, for the possible tokens of a position.

    logits: address of the logits of the position
    """
    maximum = IMPOSSIBLE
    total = 0.0
    logit_sum = 0.0
    count = 0.0
    for start in range(0, vocabulary, BLOCK):
        values = load_logits(logits, start + tl.arange(0, BLOCK), vocabulary)
        impossible = values <= IMPOSSIBLE / 2  # False for NaN, which makes the loss NaN.
        new_maximum = tl.maximum(maximum, tl.max(values, axis=0))
        total = total * tl.exp(maximum - new_maximum)
        total += tl.sum(tl.where(impossible, 0.0, tl.exp(values - new_maximum)), axis=0)
        logit_sum += tl.sum(tl.where(impossible, 0.0, values), axis=0)
        count += tl.sum(1.0 - impossible.to(tl.float32), axis=0)
        maximum = new_maximum
    return maximum + tl.log(total), logit_sum, count


@triton.jit
def r_drop_kernel(
    first,
    second,
    targets,
    losses,
    statistics,
    vocabulary,
    padding,
    smoothing,
    weight,
    BLOCK: tl.constexpr,
):
    """Compute the R-Drop loss of one position.

    first, second: logits of the two passes
    statistics:    result: (positions, 5) the logarithms of the normalisers of both passes, KL(p₁‖p₂),
                   KL(p₂‖p₁) and the number of possible tokens
    """
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(targets + row)
    is_real = target != padding
    first += row * vocabulary
    second += row * vocabulary
    first_normaliser, first_sum, count = log_normaliser(first, vocabulary, BLOCK)
    second_normaliser, second_sum, _ = log_normaliser(second, vocabulary, BLOCK)
    first_divergence = 0.0
    second_divergence = 0.0
    for start in range(0, vocabulary, BLOCK):
        token = start + tl.arange(0, BLOCK)
        first_log = load_logits(first, token, vocabulary) - first_normaliser
        second_log = load_logits(second, token, vocabulary) - second_normaliser
        difference = tl.where(first_log <= IMPOSSIBLE / 2, 0.0, first_log - second_log)
        first_divergence += tl.sum(tl.exp(first_log) * difference, axis=0)
        second_divergence -= tl.sum(tl.exp(second_log) * difference, axis=0)
    address = tl.where(is_real, target, 0)
    first_target = load_logits(first, address, vocabulary) - first_normaliser
    second_target = load_logits(second, address, vocabulary) - second_normaliser
    target_sum = first_target + second_target
    # The smoothing mass is spread over the `count` possible tokens.
    log_sum = first_sum + second_sum - count * (first_normaliser + second_normaliser)
    likelihood = (1 - smoothing) / 2 * target_sum + smoothing / (2 * count) * log_sum
    loss = weight / 4 * (first_divergence + second_divergence) - likelihood
    tl.store(losses + row, tl.where(is_real, loss, 0.0))
    statistics += row * 5
    tl.store(statistics, first_normaliser)
    tl.store(statistics + 1, second_normaliser)
    tl.store(statistics + 2, first_divergence)
    tl.store(statistics + 3, second_divergence)
    tl.store(statistics + 4, count)


@triton.jit
def r_drop_gradient_kernel(
    first,
    second,
    targets,
    statistics,
    loss_gradient,
    first_gradient,
    second_gradient,
    vocabulary,
    padding,
    smoothing,
    weight,
    BLOCK: tl.constexpr,
):
    """Compute the gradients of the logits of one position in both passes.

    statistics:    as computed by `r_drop_kernel`
    loss_gradient: gradient of the sum of all losses: ()
    """
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(targets + row)
    first += row * vocabulary
    second += row * vocabulary
    first_gradient += row * vocabulary
    second_gradient += row * vocabulary
    statistics += row * 5
    first_normaliser, second_normaliser = tl.load(statistics), tl.load(statistics + 1)
    first_divergence, second_divergence = tl.load(statistics + 2), tl.load(statistics + 3)
    scale = tl.load(loss_gradient).to(tl.float32)
    count = tl.load(statistics + 4)
    # Weights of the target, and of each possible token, in the cross-entropies.
    target_weight = (1 - smoothing) / 2
    token_weight = smoothing / (2 * count)
    total_weight = target_weight + token_weight * count
    for start in range(0, vocabulary, BLOCK):
        token = start + tl.arange(0, BLOCK)
        first_log = load_logits(first, token, vocabulary) - first_normaliser
        second_log = load_logits(second, token, vocabulary) - second_normaliser
        is_ignored = (first_log <= IMPOSSIBLE / 2) | (target == padding)
        difference = tl.where(is_ignored, 0.0, first_log - second_log)
        first_p, second_p = tl.exp(first_log), tl.exp(second_log)
        own_weight = token_weight + tl.where(token == target, target_weight, 0.0)
        # The derivative of both divergences by the logits of the first pass is
        # p₁ (log p₁ - log p₂ - KL(p₁‖p₂)) + p₁ - p₂.
        divergence = first_p * (difference - first_divergence) + first_p - second_p
        gradient = total_weight * first_p - own_weight + weight / 4 * divergence
        gradient = tl.where(is_ignored, 0.0, gradient * scale)
        rounded = gradient.to(first_gradient.dtype.element_ty)
        tl.store(first_gradient + token, rounded, mask=token < vocabulary)
        divergence = second_p * (-difference - second_divergence) + second_p - first_p
        gradient = total_weight * second_p - own_weight + weight / 4 * divergence
        gradient = tl.where(is_ignored, 0.0, gradient * scale)
        rounded = gradient.to(second_gradient.dtype.element_ty)
        tl.store(second_gradient + token, rounded, mask=token < vocabulary)
