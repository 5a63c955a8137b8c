"""BucketLayout: one source-target pair per row, padded to one of a few bucket lengths.

Batches have only a few different shapes, so that one CUDA graph per shape can be captured and
replayed. This layout is for models that cannot separate several pairs in one row, such as recurrent
models.
"""

from dataclasses import dataclass

import numpy as np

from seqloom.core.batch import Batch, Source
from seqloom.data.batching.layout import example_sizes, refuse_too_long
from seqloom.data.batching.packing import TokenGrid
from seqloom.data.corpus.corpus import Corpus
from seqloom.data.corpus.dataset import Dataset, IntArray
from seqloom.data.corpus.token_store import TokenRows
from seqloom.text.vocabulary import END, START

MIN_STEP = 4
"""Difference between two successive bucket lengths, for sequences shorter than 64 tokens. For
longer sequences, the difference is 1/16 to 1/8 of the sequence length."""


@dataclass(frozen=True)
class BucketLayout:
    """One pair per row. Sources and targets of a batch are padded to the same bucket length.

    A batch always has budget // bucket length rows. If there are fewer pairs than rows, the
    remaining rows are empty. Empty rows have no targets, so they add nothing to the loss.

    budget: maximum number of tokens on each side of a batch, padding included
    """

    budget: int

    def plan(
        self, source_lengths: IntArray | None, target_lengths: IntArray, seed: int, epoch: int
    ) -> list[IntArray]:
        sizes = example_sizes(source_lengths, target_lengths)
        refuse_too_long(source_lengths, target_lengths, self.budget)
        generator = np.random.default_rng([seed, epoch])
        shuffled = generator.permutation(len(sizes))
        lengths = self._bucket_lengths(sizes[shuffled])
        batches: list[IntArray] = []
        for length in np.unique(lengths).tolist():
            pairs = shuffled[lengths == length]
            rows = self.budget // length
            batches += [pairs[start : start + rows] for start in range(0, len(pairs), rows)]
        return [batches[index] for index in generator.permutation(len(batches))]

    def refuse_too_long(self, source_lengths: IntArray | None, target_lengths: IntArray) -> None:
        refuse_too_long(source_lengths, target_lengths, self.budget)

    def gather(self, corpus: Dataset, indices: IntArray) -> Batch:
        assert isinstance(corpus, Corpus), "BucketLayout requires a Corpus"
        targets = corpus.targets.take(indices)
        sources = None if corpus.sources is None else corpus.sources.take(indices)
        source_lengths = sources.lengths if isinstance(sources, TokenRows) else targets.lengths
        sizes = np.maximum(source_lengths, targets.lengths) + 1
        length = int(self._bucket_lengths(sizes).max())
        shape = (self.budget // length, length)
        rows = np.arange(len(indices))
        columns = np.zeros_like(rows)
        source: Source | None
        if isinstance(sources, TokenRows):
            source = TokenGrid(shape, rows, columns, sources).ending_with(END)
            # Attention needs at least one source position, so END is written to empty rows.
            source.values[len(indices) :, 0] = END
            source.lengths[len(indices) :] = 1
        else:
            source = None if sources is None else sources.with_rows(shape[0])
        grid = TokenGrid(shape, rows, columns, targets)
        return Batch(source, grid.starting_with(START), grid.ending_with(END))

    def _bucket_lengths(self, sizes: IntArray) -> IntArray:
        """Return, for each size, the bucket length to which a sequence of that size is padded."""
        step = 1 << np.maximum(np.floor(np.log2(sizes)).astype(np.int64) - 3, 0)
        step = np.maximum(step, MIN_STEP)
        return np.minimum(-(-sizes // step) * step, self.budget)
