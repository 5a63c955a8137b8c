"""Shards: parts of an epoch over a large dataset, which are planned one at a time."""

import numpy as np

from seqloom.data.corpus.dataset import IntArray

SHARD_SIZE = 2**19
"""Approximate number of examples in a shard, which are sorted by length and shuffled together."""
BLOCK_SIZE = 2**10
"""Number of neighbouring examples that stay in one shard, so that a shard touches few pages of a
memory-mapped corpus."""


def shards_per_epoch(examples: int) -> int:
    """Return the number of shards: 1 unless the dataset is large."""
    return max(1, -(-examples // SHARD_SIZE))


def shard_examples(examples: int, shards: int, seed: int, number: int) -> IntArray:
    """Return the indices of the examples of a shard, in ascending order.

    Which blocks form a shard is drawn anew for each epoch.

    examples: number of examples in the dataset
    shards:   number of shards in an epoch, which together contain every example once
    number:   number of the shard, counted from the start of training across epochs
    """
    if shards == 1:
        return np.arange(examples)
    epoch, shard = divmod(number, shards)
    blocks = -(-examples // BLOCK_SIZE)
    shuffled = np.random.default_rng([seed, epoch]).permutation(blocks)
    selected = np.sort(shuffled[blocks * shard // shards : blocks * (shard + 1) // shards])
    indices = (selected[:, None] * BLOCK_SIZE + np.arange(BLOCK_SIZE)).ravel()
    return indices[indices < examples]
