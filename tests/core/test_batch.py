"""Padded sequences and batches."""

from dataclasses import replace

import torch

from seqloom.core.batch import Batch, Images, Packing, Padded


def test_the_mask_is_true_at_real_positions_only() -> None:
    padded = Padded(torch.zeros(3, 3, dtype=torch.long), torch.tensor([3, 1, 0]))
    assert padded.mask.tolist() == [[True, True, True], [True, False, False], [False] * 3]


def packed_batch(start: int) -> Batch:
    """A batch whose tensors contain the numbers from `start` on."""
    numbers = torch.arange(start, start + 1000).split(12)
    values = [number.view(2, 6) for number in numbers[:7]]
    lengths = [number[:2] for number in numbers[7:10]]
    source, inputs, targets = map(Padded, values[:3], lengths)
    return Batch(source, inputs, targets, Packing(*values[3:]), lead=numbers[10][:2])


def assert_equal_batches(first: Batch, second: Batch) -> None:
    for one, other in zip(first.tensors(), second.tensors(), strict=True):
        assert torch.equal(one, other)


def test_a_batch_in_one_block_is_copied_at_once() -> None:
    batch = packed_batch(0)
    joined = batch.in_one_block()
    assert_equal_batches(joined, batch)
    assert joined.block is not None
    assert joined.block.numel() == sum(tensor.numel() for tensor in batch.tensors())
    other = packed_batch(5000)
    joined.copy_from(other.in_one_block())
    assert_equal_batches(joined, other)
    joined.copy_from(batch)  # separate tensors
    assert_equal_batches(joined, batch)


def test_a_part_of_a_batch_is_not_a_block() -> None:
    """A copy of the block would contain the whole batch."""
    halves = packed_batch(0).in_one_block().halves()
    assert [half.block for half in halves] == [None, None]
    other = [half.map(torch.zeros_like) for half in halves]
    for target, half in zip(other, halves, strict=True):
        target.copy_from(half)
        assert_equal_batches(target, half)


def test_tensors_of_different_types_are_copied_one_by_one() -> None:
    batch = replace(packed_batch(0), source=Images(torch.rand(2, 3, 4, 4)))
    joined = batch.in_one_block()
    assert joined.block is None
    assert_equal_batches(joined, batch)
    assert all(
        one is not other for one, other in zip(joined.tensors(), batch.tensors(), strict=True)
    )
