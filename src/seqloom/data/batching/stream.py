"""BatchStream: an endless, resumable stream of batches."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from seqloom.core.batch import Batch
from seqloom.data.batching.layout import BatchLayout
from seqloom.data.batching.mixture import draw_epoch, group_shares, groups_of
from seqloom.data.corpus.dataset import Dataset, IntArray

BATCH_RULES = 2
"""Version of the rules by which all layouts form batches. Raise it when the batches change. If a run is
then resumed in the middle of an epoch, training logs a note."""
SHARD_SIZE = 2**19
"""Approximate number of examples in a shard. Batches are planned (grouped by length, then shuffled)
within one shard."""
BLOCK_SIZE = 2**10
"""Number of consecutive examples in a block. All examples of a block belong to the same shard, so
that reading a shard loads few pages of a memory-mapped corpus."""


def shards_per_epoch(examples: int) -> int:
    """Return the number of shards in an epoch: 1 for up to SHARD_SIZE examples."""
    return max(1, -(-examples // SHARD_SIZE))


def shard_examples(examples: int, shards: int, seed: int, shard: int) -> IntArray:
    """Return the indices of the examples of a shard, in ascending order.

    The dataset is divided into blocks of BLOCK_SIZE consecutive examples. In each epoch, the blocks
    are assigned to the shards at random.

    examples: number of examples in the dataset
    shards:   number of shards in an epoch. Together they contain every example once.
    shard:    index of the shard, counted from the start of training across epochs
    """
    if shards == 1:
        return np.arange(examples)
    epoch, index = divmod(shard, shards)
    blocks = -(-examples // BLOCK_SIZE)
    shuffled = np.random.default_rng([seed, epoch]).permutation(blocks)
    selected = np.sort(shuffled[blocks * index // shards : blocks * (index + 1) // shards])
    indices = (selected[:, None] * BLOCK_SIZE + np.arange(BLOCK_SIZE)).ravel()
    return indices[indices < examples]


StreamPosition = tuple[int, int]
"""(shard, index of a batch within the shard). Shards are counted from the start of training, across
epochs."""


@dataclass(frozen=True)
class ShardPlan:
    """The batches of one shard.

    corpus:  the dataset to use in the epoch of this shard. Each epoch can have its own dataset, for
             example with another subword segmentation
    batches: for each batch, the indices of its examples in `corpus`
    """

    corpus: Dataset
    batches: list[IntArray]


class BatchStream:
    """Yields batches, shard by shard. A batch depends only on the seed, the shard and the index of
    the batch within the shard.

    A shard is a whole epoch or, if the dataset is large, a part of an epoch. The batches of a large
    dataset are planned in the background, one shard at a time, so that neither the waiting time nor
    the memory grows with the dataset.

    All ranks plan the same sequence of batches. A call of `next()` takes the next `ranks` batches
    of the sequence. It returns only one of them, the batch at index `rank`. So each batch is used
    on exactly one rank. The batches that a call takes can belong to different shards.

    temperature: if 1, each epoch contains every example once. Higher values make the numbers of
                 examples drawn from each group (such as a language pair) more equal. See the module
                 `mixture`.
    replay_share: in fine-tuning, share of an epoch that is drawn from the training examples of the
                 parent (the run that fine-tuning starts from); None for no such examples
    """

    def __init__(
        self,
        corpus: Dataset,
        layout: BatchLayout,
        seed: int,
        rank: int = 0,
        ranks: int = 1,
        temperature: float = 1.0,
        replay_share: float | None = None,
    ) -> None:
        assert 0 <= rank < ranks, f"rank {rank} of {ranks}"
        assert len(corpus), "a stream needs at least one example"
        for variant in corpus.variants():
            layout.refuse_too_long(variant.source_lengths, variant.target_lengths)
            variant.release()
        self.corpus = corpus
        self.layout = layout
        self.seed = seed
        self.rank = rank
        self.ranks = ranks
        self.temperature = temperature
        self.replay_share = replay_share
        self.shards_per_epoch = shards_per_epoch(self._epoch_size())
        self._position = (0, 0)
        self._plans: dict[int, ShardPlan] = {}
        self._planned_ahead: dict[int, Future[ShardPlan]] = {}
        self._planner = ThreadPoolExecutor(1, "seqloom-planner")

    def _epoch_size(self) -> int:
        """Return the number of examples in an epoch, which determines the number of shards.

        With temperature sampling, an epoch can be slightly longer than this number.
        """
        if self.replay_share is None:
            return len(self.corpus)
        groups = groups_of(self.corpus.report)
        shares = group_shares(groups, self.temperature, self.replay_share)
        return sum(share.drawn for share in shares)

    @property
    def position(self) -> StreamPosition:
        """Position in the sequence of batches, which all ranks share: (shard, index in the shard).

        The next call of `next()` starts there. To resume training, assign a stored position. The
        shard is planned only when its first batch is needed.
        """
        return self._position

    @position.setter
    def position(self, position: StreamPosition) -> None:
        self._position = position

    def epoch_of(self, position: StreamPosition) -> int:
        """Return the epoch of a position, counted from 0."""
        return position[0] // self.shards_per_epoch

    def batches_in_shard(self, shard: int) -> int:
        """Return the number of batches in a shard."""
        return len(self._plan(shard).batches)

    def examples_from(self, position: StreamPosition, batches: int) -> list[int]:
        """Return the indices of the examples in consecutive batches, sorted and without repetition.

        position: position of the first batch
        batches:  number of batches, on all ranks together
        """
        shard, index = position
        positions = [self._normalised(shard, index + offset) for offset in range(batches)]
        planned = [self._plan(shard).batches[index] for shard, index in positions]
        return sorted({int(example) for batch in planned for example in batch})

    def start(self) -> None:
        """Start to prepare batches, if the stream prepares them in advance. Otherwise do nothing."""

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        shard, index = self._normalised(self._position[0], self._position[1] + self.rank)
        plan = self._plan(shard)
        batch = self.layout.gather(plan.corpus, plan.batches[index])
        self._position = self._normalised(self._position[0], self._position[1] + self.ranks)
        return batch

    def close(self) -> None:
        """Plan no more shards. The stream cannot be used afterwards.

        If the background thread is planning a shard, it completes this plan and then ends. This
        method does not wait for the thread.
        """
        self._planner.shutdown(wait=False, cancel_futures=True)

    def _normalised(self, shard: int, index: int) -> StreamPosition:
        """Return the position of a batch, given by an index that may be past the end of the shard.

        If the shard has n batches, index n becomes index 0 of the next shard.
        """
        assert shard >= 0
        assert index >= 0
        while index >= self.batches_in_shard(shard):
            index -= self.batches_in_shard(shard)
            shard += 1
        return shard, index

    def _plan(self, shard: int) -> ShardPlan:
        if shard not in self._plans:
            # Keep the plan of the previous shard: a group of batches can extend over two shards.
            self._plans = {kept: self._plans[kept] for kept in self._plans if kept == shard - 1}
            future = self._planned_ahead.pop(shard, None)
            self._plans[shard] = self._make_plan(shard) if future is None else future.result()
            if self.shards_per_epoch > 1:
                # Unmap the pages of the previous shard. They may stay in the system's page cache.
                self._plans[shard].corpus.release()
                next_plan = self._planner.submit(self._make_plan, shard + 1)
                self._planned_ahead = {shard + 1: next_plan}
        return self._plans[shard]

    def _make_plan(self, shard: int) -> ShardPlan:
        corpus = self.corpus.for_epoch(shard // self.shards_per_epoch)
        examples = self._shard_examples(corpus, shard)
        sources = None if corpus.source_lengths is None else corpus.source_lengths[examples]
        batches = self.layout.plan(sources, corpus.target_lengths[examples], self.seed, shard)
        return ShardPlan(corpus, [examples[batch] for batch in batches])

    def _shard_examples(self, corpus: Dataset, shard: int) -> IntArray:
        """Return the indices of a shard's examples.

        Normally, an epoch contains every example once. If `temperature` or `replay_share` changes
        how many examples are drawn from each group (such as a language pair), an example can occur
        several times or not at all.
        """
        shards = self.shards_per_epoch
        if self.temperature == 1 and self.replay_share is None:
            return shard_examples(len(corpus), shards, self.seed, shard)
        groups, epoch = groups_of(corpus.report), shard // shards
        drawn = draw_epoch(groups, self.temperature, self.seed, epoch, self.replay_share)
        return drawn[shard_examples(len(drawn), shards, self.seed, shard)]
