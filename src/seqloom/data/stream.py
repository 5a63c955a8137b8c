"""Batches without end, from a place that can be noted down and returned to."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from seqloom.core.sequences import Batch
from seqloom.data.batching import plan_batches
from seqloom.data.collate import collate
from seqloom.data.corpus import Corpus


def gather(corpus: Corpus, indices: NDArray[np.int64]) -> Batch:
    """These examples of a corpus as a batch."""
    chosen = indices.tolist()
    sources = None if corpus.source_lengths is None else [corpus.source(i) for i in chosen]
    return collate(sources, [corpus.target(i) for i in chosen])


class BatchStream:
    """One epoch after the other. Which batch comes is a pure function of (seed, epoch, index).

    All ranks walk along the same sequence of batches, `ranks` of them at a time: rank r takes
    the r-th of each group, and a group may reach into the next epoch. So no batch is left out or
    seen twice, and the position, that of the next group, is the same on all ranks.
    """

    def __init__(
        self, corpus: Corpus, budget: int, seed: int, rank: int = 0, ranks: int = 1
    ) -> None:
        assert 0 <= rank < ranks, f"rank {rank} of {ranks}"
        self.corpus = corpus
        self.budget = budget
        self.seed = seed
        self.rank = rank
        self.ranks = ranks
        self._epoch = 0
        self._index = 0
        self._plans: dict[int, list[NDArray[np.int64]]] = {}

    @property
    def position(self) -> tuple[int, int]:
        """(epoch, index) of the next group's first batch. Set it to continue from there."""
        return self._epoch, self._index

    @position.setter
    def position(self, position: tuple[int, int]) -> None:
        self._epoch, self._index = self._carry(*position)

    def batches_in(self, epoch: int) -> int:
        return len(self._plan(epoch))

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        epoch, index = self._carry(self._epoch, self._index + self.rank)
        batch = gather(self.corpus, self._plan(epoch)[index])
        self._epoch, self._index = self._carry(self._epoch, self._index + self.ranks)
        return batch

    def _carry(self, epoch: int, index: int) -> tuple[int, int]:
        """The same place with an index inside its epoch."""
        assert epoch >= 0
        assert index >= 0
        while index >= self.batches_in(epoch):
            index -= self.batches_in(epoch)
            epoch += 1
        return epoch, index

    def _plan(self, epoch: int) -> list[NDArray[np.int64]]:
        if epoch not in self._plans:
            # Two epochs at most are looked at in turn: the one that ends and the next.
            self._plans = {kept: self._plans[kept] for kept in self._plans if kept == epoch - 1}
            self._plans[epoch] = plan_batches(
                self.corpus.source_lengths,
                self.corpus.target_lengths,
                self.budget,
                self.seed,
                epoch,
            )
        return self._plans[epoch]
