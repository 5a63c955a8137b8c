"""Batches without end, from a place that can be noted down and returned to."""

from collections.abc import Iterator

from seqloom.core.sequences import Batch
from seqloom.data.batching import Sizes
from seqloom.data.corpus import Corpus
from seqloom.data.layout import Layout


class BatchStream:
    """One epoch after the other. Which batch comes is a pure function of (seed, epoch, index).

    All ranks walk along the same sequence of batches, `ranks` of them at a time: rank r takes
    the r-th of each group, and a group may reach into the next epoch. So no batch is left out or
    seen twice, and the position, that of the next group, is the same on all ranks.
    """

    def __init__(
        self, corpus: Corpus, layout: Layout, seed: int, rank: int = 0, ranks: int = 1
    ) -> None:
        assert 0 <= rank < ranks, f"rank {rank} of {ranks}"
        self.corpus = corpus
        self.layout = layout
        self.seed = seed
        self.rank = rank
        self.ranks = ranks
        self._epoch = 0
        self._index = 0
        self._plans: dict[int, list[Sizes]] = {}

    @property
    def position(self) -> tuple[int, int]:
        """(epoch, index) of the next group's first batch. Set it to continue from there."""
        return self._epoch, self._index

    @position.setter
    def position(self, position: tuple[int, int]) -> None:
        self._epoch, self._index = self._carry(*position)

    def batches_in(self, epoch: int) -> int:
        return len(self._plan(epoch))

    def examples_from(self, position: tuple[int, int], batches: int) -> list[int]:
        """The examples of so many batches, from this position on, whatever their rank."""
        places = [self._carry(position[0], position[1] + further) for further in range(batches)]
        return sorted({int(one) for epoch, index in places for one in self._plan(epoch)[index]})

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        epoch, index = self._carry(self._epoch, self._index + self.rank)
        batch = self.layout.gather(self.corpus, self._plan(epoch)[index])
        self._epoch, self._index = self._carry(self._epoch, self._index + self.ranks)
        return batch

    def close(self) -> None:
        """Nothing is left running."""

    def _carry(self, epoch: int, index: int) -> tuple[int, int]:
        """The same place with an index inside its epoch."""
        assert epoch >= 0
        assert index >= 0
        while index >= self.batches_in(epoch):
            index -= self.batches_in(epoch)
            epoch += 1
        return epoch, index

    def _plan(self, epoch: int) -> list[Sizes]:
        if epoch not in self._plans:
            # Two epochs at most are looked at in turn: the one that ends and the next.
            self._plans = {kept: self._plans[kept] for kept in self._plans if kept == epoch - 1}
            self._plans[epoch] = self.layout.plan(
                self.corpus.source_lengths, self.corpus.target_lengths, self.seed, epoch
            )
        return self._plans[epoch]
