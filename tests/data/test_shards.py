"""Shards: parts of an epoch over a large dataset."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.batching.stream import BLOCK_SIZE, SHARD_SIZE, shard_examples, shards_per_epoch


@given(examples=st.integers(1, 40 * BLOCK_SIZE), shards=st.integers(1, 5), epoch=st.integers(0, 3))
def test_shards_of_an_epoch_contain_every_example_once(
    examples: int, shards: int, epoch: int
) -> None:
    numbers = range(epoch * shards, (epoch + 1) * shards)
    parts = [shard_examples(examples, shards, 7, number) for number in numbers]
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(examples))


def test_small_datasets_have_one_shard_and_large_ones_shards_of_similar_size() -> None:
    assert shards_per_epoch(1) == shards_per_epoch(SHARD_SIZE) == 1
    shards = shards_per_epoch(10**7)
    assert shards > 1
    sizes = [len(shard_examples(10**7, shards, 0, number)) for number in range(shards)]
    assert max(sizes) <= SHARD_SIZE + BLOCK_SIZE
    assert max(sizes) - min(sizes) <= 2 * BLOCK_SIZE


def test_shards_change_with_epoch_and_seed() -> None:
    first = shard_examples(64 * BLOCK_SIZE, 4, 0, 0)
    assert not np.array_equal(first, shard_examples(64 * BLOCK_SIZE, 4, 0, 4))
    assert not np.array_equal(first, shard_examples(64 * BLOCK_SIZE, 4, 1, 0))
    # Blocks come from the whole dataset, not from one section of it.
    assert first.max() - first.min() > 32 * BLOCK_SIZE
