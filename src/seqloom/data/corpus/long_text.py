"""Long text: the lines of a corpus, joined to one text and cut into windows.

Example with windows of 5 tokens and a context of 2 tokens:

    text       a b c d e f g h i j k l m …
    predicted  [a b c d e][f g h][i j k][l m …
    window 2          [d e f g h]
    window 3                [g h i j k]

A window consists of a context, which the decoder only reads, and of tokens to predict. In the line
`predicted`, each pair of brackets contains the tokens that one window predicts. Every token of the
text is predicted in exactly one window. The first window has no context.

The decoder input at the first position of a window is the token before the window. If the window
starts at the start of a line, this input is START. END is never a target.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seqloom.config.schema.corpora import LongTextConfig
from seqloom.config.schema.data import DataConfig
from seqloom.core.batch import Batch, Padded
from seqloom.core.errors import ConfigError
from seqloom.data.corpus.corpus import Corpus
from seqloom.data.corpus.dataset import CorpusReport, Dataset, IntArray
from seqloom.data.example import Split
from seqloom.data.readers.splits import corpora_of
from seqloom.text.vocabulary import PAD, START


@dataclass(frozen=True)
class WindowShape:
    """Length and context of the windows of a long text.

    length:  number of tokens in a window
    context: number of tokens at the start of a window that the decoder reads but does not predict.
             The first window of a text has no context.
    """

    length: int
    context: int


def window_shape(config: DataConfig, split: Split) -> WindowShape | None:
    """Return the window shape of a split; None if the split is not long text.

    If the recipe does not set the context, it is 0 for the training split and half a window for the
    dev and test splits.
    """
    for corpus in corpora_of(config, split):
        if isinstance(corpus, LongTextConfig):
            default = 0 if split == "train" else corpus.length // 2
            return WindowShape(corpus.length, default if corpus.context is None else corpus.context)
    return None


@dataclass(frozen=True)
class TextWindows:
    """A long text, divided into windows.

    ids:     (N,) token ids of the text, which has N tokens
    newline: token id of the line ending
    first:   number of tokens to predict in the first window, at most `shape.length`
    """

    ids: IntArray
    shape: WindowShape
    newline: int
    first: int

    def __len__(self) -> int:
        return len(self.cuts) - 1

    @cached_property
    def cuts(self) -> IntArray:
        """(W + 1,) indices that divide the text into the parts that the W windows predict.

        Window w predicts the tokens ids[cuts[w] : cuts[w + 1]].
        """
        stride = self.shape.length - self.shape.context
        inner = np.arange(self.first, len(self.ids), stride)
        return np.concatenate(([0], inner, [len(self.ids)])).astype(np.int64)

    @cached_property
    def sizes(self) -> IntArray:
        """The number of tokens in each of the W windows, context included: (W,)."""
        return self.cuts[1:] - self._window_starts(self.cuts[:-1])

    def _window_starts(self, predicted_starts: IntArray) -> IntArray:
        return np.maximum(predicted_starts - self.shape.context, 0)

    def gather(self, indices: IntArray, rows: int) -> Batch:
        """Return a batch of the windows at `indices`, one per row: (rows, length).

        If there are fewer windows than `rows`, empty rows are appended.

        The first input of a window is the token before the window. If the window begins at the
        start of the text or of a line, the first input is START. So the model learns to begin a
        text after START.
        """
        predicted_starts, ends = self.cuts[indices], self.cuts[indices + 1]
        starts = self._window_starts(predicted_starts)
        positions = starts[:, None] + np.arange(self.shape.length)  # (W, T)
        is_real = positions < ends[:, None]
        is_predicted = is_real & (positions >= predicted_starts[:, None])
        current = np.minimum(positions, len(self.ids) - 1)
        inputs = np.where(is_real, self.ids[np.maximum(current, 1) - 1], PAD)
        targets = np.where(is_predicted, self.ids[current], PAD)
        inputs[(starts == 0) | (inputs[:, 0] == self.newline), 0] = START
        lengths = _with_empty_rows(ends - starts, rows)
        lead = _with_empty_rows(predicted_starts - starts, rows) if self.shape.context else None
        return Batch(
            source=None,
            inputs=Padded(_with_empty_rows(inputs, rows), lengths),
            targets=Padded(_with_empty_rows(targets, rows), lengths),
            lead=lead,
        )

    def batches(self, budget: int) -> Iterator[Batch]:
        """Yield every window once, in batches of at most `budget` tokens. If the window length
        exceeds `budget`, each batch contains one window."""
        rows = max(budget // self.shape.length, 1)
        for start in range(0, len(self), rows):
            indices = np.arange(start, min(start + rows, len(self)))
            yield self.gather(indices, len(indices))


def _with_empty_rows(values: NDArray[Any], rows: int) -> torch.Tensor:
    """Append rows of zeros until there are `rows` rows.

    The values are token ids or lengths. The token id 0 is PAD. The length 0 means that a row is
    empty.
    """
    filled = np.zeros((rows, *values.shape[1:]), dtype=np.int64)
    filled[: len(values)] = values
    return torch.from_numpy(filled)


def scoring_windows(ids: IntArray, shape: WindowShape, newline: int) -> TextWindows:
    """Return the windows for scoring a text. The first window has the full length and no context:
    all its tokens are predicted."""
    return TextWindows(ids, shape, newline, first=shape.length)


def training_windows(
    ids: IntArray, shape: WindowShape, newline: int, seed: int, epoch: int = 0
) -> TextWindows:
    """Return the windows for training in one epoch. The length of the first window is random, so
    that the windows of other epochs begin at other tokens."""
    stride = shape.length - shape.context
    first = int(np.random.default_rng([seed, epoch]).integers(1, stride + 1))
    return TextWindows(ids, shape, newline, first)


class LongTextDataset:
    """A dataset in which each example is a window of a long text."""

    source_lengths = None

    def __init__(
        self,
        corpus: Corpus,
        shape: WindowShape,
        newline: int,
        seed: int | None,
        epoch: int = 0,
    ) -> None:
        """Divide the text of a corpus into windows.

        newline: token id of the line ending
        seed:    in training, the seed of the random window positions, which change in every epoch.
                 In scoring, None: the positions are fixed.
        """
        self.corpus = corpus
        self.shape = shape
        self.newline = newline
        self.seed = seed
        self.epoch = epoch
        ids = corpus.targets.ids
        if seed is None:
            self.windows = scoring_windows(ids, shape, newline)
        else:
            self.windows = training_windows(ids, shape, newline, seed, epoch)

    def __len__(self) -> int:
        return len(self.windows)

    @property
    def report(self) -> CorpusReport:
        """Numbers of examples and tokens of the text. Each line counts as one example."""
        return self.corpus.report

    @property
    def digest(self) -> str:
        return self.corpus.digest

    @property
    def target_lengths(self) -> IntArray:
        """(N,) target length of each of the N windows, as batching expects it.

        Batching adds one to each length for START or END. A window contains neither, so this length
        is the number of tokens in the window minus one.
        """
        return self.windows.sizes - 1

    def gather(self, indices: IntArray) -> Batch:
        return self.windows.gather(indices, len(indices))

    def for_epoch(self, epoch: int) -> "LongTextDataset":
        """Return a dataset with the same text and the window positions of the given epoch."""
        if self.seed is None or epoch == self.epoch:
            return self
        return LongTextDataset(self.corpus, self.shape, self.newline, self.seed, epoch)

    def variants(self) -> Iterator["LongTextDataset"]:
        """Yield only this dataset, because the window length is the same in all epochs.

        The caller checks that no window is too long for a batch.
        """
        yield self

    def release(self) -> None:
        self.corpus.release()


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
