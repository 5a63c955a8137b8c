"""BatchLayout: which examples form a batch, and how they are arranged in it.

Batches are planned by token budget: examples of similar lengths form a batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from seqloom.core.batch import Batch
from seqloom.core.errors import DataError
from seqloom.data.corpus.dataset import Dataset, IntArray

CHUNK_SIZE = 2**20
"""Number of examples whose lengths are examined at once."""


def plan_batches(
    source_lengths: IntArray | None, target_lengths: IntArray, budget: int, seed: int, epoch: int
) -> list[IntArray]:
    """Return the batches of an epoch as arrays of example indices.

    The result depends only on the arguments. In each batch, the number of rows times the length of
    the longest source or target is at most `budget`. This length includes START or END.

    Examples are sorted by the length of their source or their target, whichever is longer, and
    consecutive examples form a batch. Examples of equal lengths are in random order. Finally, the
    batches are shuffled.

    Sorting by both lengths would save some padding, but then all targets of a batch have the same
    length. Models trained on such batches were worse after the same number of steps.
    """
    refuse_too_long(source_lengths, target_lengths, budget)
    sizes = example_sizes(source_lengths, target_lengths)
    generator = np.random.default_rng([seed, epoch])
    shuffled = generator.permutation(len(sizes))
    order = shuffled[np.argsort(sizes[shuffled], kind="stable")]
    batches = np.split(order, _batch_boundaries(sizes[order], budget))
    return [batches[index] for index in generator.permutation(len(batches))]


def _batch_boundaries(sizes: IntArray, budget: int) -> list[int]:
    """For every batch except the first, return the index of its first example.

    sizes: sizes of all examples, in ascending order
    """
    boundaries: list[int] = []
    start = 0
    while True:
        # The first example is the shortest of its batch, so a batch has at most this many rows.
        following = sizes[start : start + budget // int(sizes[start])]
        rows = np.arange(1, len(following) + 1)
        start += int(np.count_nonzero(rows * following <= budget))
        if start == len(sizes):
            return boundaries
        boundaries.append(start)


def example_sizes(source_lengths: IntArray | None, target_lengths: IntArray) -> IntArray:
    """Return the length of the source or the target of each example, whichever is longer.

    The length includes START or END.
    """
    if source_lengths is None:
        return target_lengths + 1
    return np.maximum(source_lengths, target_lengths) + 1


def size_chunks(source_lengths: IntArray | None, target_lengths: IntArray) -> Iterator[IntArray]:
    """Yield the sizes of all examples, in arrays of at most CHUNK_SIZE examples.

    The size of an example is the length of its source or its target, whichever is longer. It
    includes START or END.

    The lengths of a large corpus are memory-mapped. They are read in parts, so that the memory use
    does not grow with the corpus.
    """
    for start in range(0, len(target_lengths), CHUNK_SIZE):
        chunk = slice(start, start + CHUNK_SIZE)
        sources = None if source_lengths is None else source_lengths[chunk]
        yield example_sizes(sources, target_lengths[chunk])


def refuse_too_long(source_lengths: IntArray | None, target_lengths: IntArray, budget: int) -> None:
    """Raise a DataError if an example does not fit into a batch."""
    count = worst = longest = start = 0
    for sizes in size_chunks(source_lengths, target_lengths):
        count += int(np.count_nonzero(sizes > budget))
        if sizes.max() > longest:
            longest = int(sizes.max())
            worst = start + int(np.argmax(sizes))
        start += len(sizes)
    if count:
        raise DataError(
            f"{count} of {start} examples are longer than a batch may be: "
            f"example {worst} (counted from 0) has {longest} tokens, and training."
            f"batch_tokens is {budget}; raise it to {longest} or more, or drop long "
            "examples with data.filter.max_source_tokens and max_target_tokens"
        )


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
