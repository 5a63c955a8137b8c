"""The Triton kernels behind `decoding/fast/kernels.py`. Each program handles one row of logits."""

import triton
import triton.language as tl


@triton.jit
def log_sum_exp_kernel(logits, out, stride, columns, BLOCK: tl.constexpr):
    """Write log(sum of exp(logit)) of a row. The row is read once, block by block.

    If a block has a greater maximum than the blocks before, the sum is rescaled (Milakov and
    Gimelshein 2018).
    """
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    maximum = tl.full([], -1e38, tl.float32)
    total = tl.full([], 0.0, tl.float32)
    for start in range(0, columns, BLOCK):
        inside = start + offsets < columns
        pointer = logits + row * stride + start + offsets
        block = tl.load(pointer, mask=inside, other=float("-inf")).to(tl.float32)
        new_maximum = tl.maximum(maximum, tl.max(block, axis=0))
        total = total * tl.exp(maximum - new_maximum) + tl.sum(tl.exp(block - new_maximum), axis=0)
        maximum = new_maximum
    tl.store(out + row, maximum + tl.log(total))


@triton.jit
def top_k_kernel(
    values, best, best_columns, stride, columns, COUNT: tl.constexpr, BLOCK: tl.constexpr
):
    """Write the COUNT largest values of a row, largest first, and their columns.

    The whole row is kept in registers. The first column wins if values are equal.
    """
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    remaining = tl.load(values + row * stride + offsets, mask=inside, other=float("-inf"))
    remaining = remaining.to(tl.float32)
    for rank in tl.static_range(COUNT):
        value, column = tl.max(
            remaining, axis=0, return_indices=True, return_indices_tie_break_left=True
        )
        tl.store(best + row * COUNT + rank, value)
        tl.store(best_columns + row * COUNT + rank, column.to(tl.int64))
        remaining = tl.where(offsets == column, float("-inf"), remaining)
