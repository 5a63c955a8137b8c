"""BatchLayout: how the examples of a dataset are arranged in batches."""

from dataclasses import dataclass
from typing import Protocol

from seqloom.core.batch import Batch
from seqloom.data.batching.planning import plan_batches, refuse_too_long
from seqloom.data.corpus.dataset import Dataset, IntArray


class BatchLayout(Protocol):
    """Decides which examples form a batch, and how the batch is assembled.

    PaddedLayout   one example per row, padded to the longest example. The default on a CPU.
    PackedLayout   several examples per row. Nearly all batches have the same shape. For
                   Transformers on a GPU.
    BucketLayout   one example per row. Batches have a few different shapes. For recurrent models
                   on a GPU.
    WindowLayout   one window of a long text per row. All batches have the same shape.
    """

    def plan(
        self, source_lengths: IntArray | None, target_lengths: IntArray, seed: int, epoch: int
    ) -> list[IntArray]:
        """Return the batches of an epoch as arrays of example indices.

        Each example is in exactly one batch. The result depends only on the arguments.

        source_lengths, target_lengths: lengths of all examples, without START and END
        seed, epoch:                    determine the shuffling

        For a large dataset, `plan` is called once per shard. In this case, the arguments are the
        lengths of the examples of one shard, and `epoch` is the index of the shard, counted from
        the start of training.
        """
        ...

    def refuse_too_long(self, source_lengths: IntArray | None, target_lengths: IntArray) -> None:
        """Raise an error if an example does not fit into a batch. The error message names the
        length of the example and the setting to change."""
        ...

    def gather(self, corpus: Dataset, indices: IntArray) -> Batch:
        """Assemble the examples at `indices` into a batch."""
        ...


@dataclass(frozen=True)
class PaddedLayout:
    """One example per row, padded to the longest example in the batch.

    budget: maximum number of source tokens, and of target tokens, in a batch, padding included
    """

    budget: int

    def plan(
        self, source_lengths: IntArray | None, target_lengths: IntArray, seed: int, epoch: int
    ) -> list[IntArray]:
        return plan_batches(source_lengths, target_lengths, self.budget, seed, epoch)

    def refuse_too_long(self, source_lengths: IntArray | None, target_lengths: IntArray) -> None:
        refuse_too_long(source_lengths, target_lengths, self.budget)

    def gather(self, corpus: Dataset, indices: IntArray) -> Batch:
        return corpus.gather(indices)
