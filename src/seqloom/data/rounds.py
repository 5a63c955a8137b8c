"""Epochs of large corpora, cut into rounds that are planned one at a time."""

import numpy as np

from seqloom.data.batching import Sizes

ROUND = 2**19
"""Examples of a round, about: what is sorted by length and shuffled together."""
BLOCK = 2**10
"""Neighbours that stay in one round, so that a round touches few pages of a corpus."""


def rounds_in_epoch(examples: int) -> int:
    """One, unless the corpus is large."""
    return max(1, -(-examples // ROUND))


def examples_of_round(examples: int, rounds: int, seed: int, number: int) -> Sizes:
    """The indices that round `number` of a training plans, in ascending order.

    Rounds are counted on from epoch to epoch; `rounds` of them see every example once. Which
    blocks of neighbours share a round is drawn anew for each epoch.
    """
    if rounds == 1:
        return np.arange(examples)
    epoch, part = divmod(number, rounds)
    blocks = -(-examples // BLOCK)
    drawn = np.random.default_rng([seed, epoch]).permutation(blocks)
    ours = np.sort(drawn[blocks * part // rounds : blocks * (part + 1) // rounds])
    indices = (ours[:, None] * BLOCK + np.arange(BLOCK)).ravel()
    return indices[indices < examples]
