"""How the examples of a corpus are laid out in batches."""

from dataclasses import dataclass
from typing import Protocol

from seqloom.core.batch import Batch
from seqloom.data.batching import Sizes, plan_batches, refuse_too_long, sizes_of
from seqloom.data.examples import Examples


class Layout(Protocol):
    """Which examples travel together, and how they become a batch."""

    def plan(
        self, source_lengths: Sizes | None, target_lengths: Sizes, seed: int, epoch: int
    ) -> list[Sizes]:
        """The batches of an epoch: every index once. A pure function of its arguments.

        Lengths are those of a corpus, or of a part of it, without START and END.
        """
        ...

    def refuse_too_long(self, source_lengths: Sizes | None, target_lengths: Sizes) -> None:
        """An example of a whole corpus that fits into no batch is a DataError that says which,
        how long it is and what to set."""
        ...

    def gather(self, corpus: Examples, indices: Sizes) -> Batch:
        """These examples of a corpus as a batch."""
        ...


@dataclass(frozen=True)
class PaddedLayout:
    """An example a row, padded to the longest; rows x longest sequence <= budget."""

    budget: int

    def plan(
        self, source_lengths: Sizes | None, target_lengths: Sizes, seed: int, epoch: int
    ) -> list[Sizes]:
        return plan_batches(source_lengths, target_lengths, self.budget, seed, epoch)

    def refuse_too_long(self, source_lengths: Sizes | None, target_lengths: Sizes) -> None:
        refuse_too_long(sizes_of(source_lengths, target_lengths), self.budget)

    def gather(self, corpus: Examples, indices: Sizes) -> Batch:
        return corpus.gather(indices)
