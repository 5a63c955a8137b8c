"""WindowLayout: windows of a long text, in batches of one shape."""

from dataclasses import dataclass

import numpy as np

from seqloom.core.batch import Batch
from seqloom.core.errors import ConfigError
from seqloom.data.corpus.dataset import Dataset, IntArray
from seqloom.data.corpus.long_text import LongTextDataset


@dataclass(frozen=True)
class WindowLayout:
    """Windows of a long text in random order, as many per batch as the budget allows.

    budget: maximum number of tokens in a batch
    length: number of tokens in a window
    """

    budget: int
    length: int

    @property
    def rows(self) -> int:
        """Number of windows in a batch."""
        return self.budget // self.length

    def plan(
        self, source_lengths: IntArray | None, target_lengths: IntArray, seed: int, epoch: int
    ) -> list[IntArray]:
        self.refuse_too_long(source_lengths, target_lengths)
        shuffled = np.random.default_rng([seed, epoch]).permutation(len(target_lengths))
        starts = range(0, len(shuffled), self.rows)
        return [shuffled[start : start + self.rows] for start in starts]

    def refuse_too_long(self, source_lengths: IntArray | None, target_lengths: IntArray) -> None:
        if self.length > self.budget:
            raise ConfigError(
                f"data.train.length: a window of {self.length} tokens is longer than a whole batch "
                f"(training.batch_tokens = {self.budget}); lower data.train.length or raise "
                "training.batch_tokens"
            )

    def gather(self, corpus: Dataset, indices: IntArray) -> Batch:
        assert isinstance(corpus, LongTextDataset), "WindowLayout requires a LongTextDataset"
        return corpus.windows.gather(indices, self.rows)
