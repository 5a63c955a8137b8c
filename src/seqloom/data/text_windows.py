"""A long text, seen through windows.

    text      a b c d e f g h i j k l m …
    answered  [a b c d e][f g h][i j k][l m …        first = 5, length 5, context 2
    read             [d e f g h]
                           [g h i j k]

Every token of the text is answered once. Where a window is not the beginning of the text, its
decoder is fed the true token before; nothing is ever asked to end.
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
from seqloom.data.batching import Sizes
from seqloom.data.corpus import Corpus
from seqloom.data.example import Split
from seqloom.data.examples import CorpusReport, Examples
from seqloom.data.splits import corpora_of
from seqloom.text.vocabulary import PAD, START

Ids = NDArray[Any]
"""Of any kind of integer."""


@dataclass(frozen=True)
class WindowShape:
    """length: tokens of a window; context: so many of them are only read, but in the first"""

    length: int
    context: int


def shape_of(config: DataConfig, split: Split) -> WindowShape | None:
    """How a split is looked at; None if it is no running text."""
    for corpus in corpora_of(config, split):
        if isinstance(corpus, LongTextConfig):
            usual = 0 if split == "train" else corpus.length // 2
            return WindowShape(corpus.length, usual if corpus.context is None else corpus.context)
    return None


@dataclass(frozen=True)
class TextWindows:
    """Where a text is cut, and the batches that come of it.

    ids:     (N,) the text
    newline: the end of a line
    first:   tokens that the first window answers, at most a whole window
    """

    ids: Ids
    shape: WindowShape
    newline: int
    first: int

    def __len__(self) -> int:
        return len(self.cuts) - 1

    @cached_property
    def cuts(self) -> Sizes:
        """(W + 1,) Window w answers ids[cuts[w] : cuts[w + 1]]."""
        stride = self.shape.length - self.shape.context
        between = np.arange(self.first, len(self.ids), stride)
        return np.concatenate(([0], between, [len(self.ids)])).astype(np.int64)

    @cached_property
    def sizes(self) -> Sizes:
        """(W,) Tokens that each window reads."""
        return self.cuts[1:] - self._begins(self.cuts[:-1])

    def _begins(self, answered: Sizes) -> Sizes:
        return np.maximum(answered - self.shape.context, 0)

    def gather(self, numbers: Sizes, rows: int) -> Batch:
        """Some windows, a row each, and empty rows up to `rows`: always the same shape (B, T).

        START means: a line begins here, and nothing before it is known. It stands at the beginning
        of the text and of every window that begins with a line; so a model learns to begin.
        """
        answered, ends = self.cuts[numbers], self.cuts[numbers + 1]
        begins = self._begins(answered)
        places = begins[:, None] + np.arange(self.shape.length)  # (W, T)
        real = places < ends[:, None]
        here = np.minimum(places, len(self.ids) - 1)
        inputs = np.where(real, self.ids[np.maximum(here, 1) - 1], PAD)
        targets = np.where(real & (places >= answered[:, None]), self.ids[here], PAD)
        inputs[(begins == 0) | (inputs[:, 0] == self.newline), 0] = START
        lengths = _filled(ends - begins, rows)
        return Batch(
            source=None,
            inputs=Padded(_filled(inputs, rows), lengths),
            targets=Padded(_filled(targets, rows), lengths),
            lead=_filled(answered - begins, rows) if self.shape.context else None,
        )

    def batches(self, budget: int) -> Iterator[Batch]:
        """Every window once, in batches of at most this many tokens, or of one window."""
        rows = max(budget // self.shape.length, 1)
        for start in range(0, len(self), rows):
            numbers = np.arange(start, min(start + rows, len(self)))
            yield self.gather(numbers, len(numbers))


def _filled(values: NDArray[Any], rows: int) -> torch.Tensor:
    """The same with rows of zeros below: PAD, and no tokens."""
    room = np.zeros((rows, *values.shape[1:]), dtype=np.int64)
    room[: len(values)] = values
    return torch.from_numpy(room)


def for_scoring(ids: Ids, shape: WindowShape, newline: int) -> TextWindows:
    """The first window is full, so that no token has less before it than there could be."""
    return TextWindows(ids, shape, newline, first=shape.length)


class WindowedText:
    """Running text whose examples are windows, cut at other places in every epoch."""

    source_lengths = None

    def __init__(
        self,
        corpus: Corpus,
        shape: WindowShape,
        newline: int,
        seed: int | None,
        epoch: int = 0,
    ) -> None:
        """seed: draws the places; None: they stay where scoring wants them"""
        self.corpus = corpus
        self.shape = shape
        self.newline = newline
        self.seed = seed
        self.epoch = epoch
        ids = corpus.target_side.ids
        if seed is None:
            self.windows = for_scoring(ids, shape, newline)
        else:
            stride = shape.length - shape.context
            first = int(np.random.default_rng([seed, epoch]).integers(1, stride + 1))
            self.windows = TextWindows(ids, shape, newline, first)

    def __len__(self) -> int:
        return len(self.windows)

    @property
    def report(self) -> CorpusReport:
        """Of the lines of the text."""
        return self.corpus.report

    @property
    def digest(self) -> str:
        return self.corpus.digest

    @property
    def target_lengths(self) -> Sizes:
        """One less than are read, since batches count a START or an END on top."""
        return self.windows.sizes - 1

    def gather(self, indices: Sizes) -> Batch:
        return self.windows.gather(indices, len(indices))

    def for_epoch(self, epoch: int) -> "WindowedText":
        if self.seed is None or epoch == self.epoch:
            return self
        return WindowedText(self.corpus, self.shape, self.newline, self.seed, epoch)

    def variants(self) -> Iterator["WindowedText"]:
        """One speaks for all: they differ only in where they are cut."""
        yield self

    def release(self) -> None:
        self.corpus.release()


@dataclass(frozen=True)
class WindowLayout:
    """As many windows a batch as the budget allows, in a random order: one shape for all."""

    budget: int
    length: int

    @property
    def rows(self) -> int:
        return self.budget // self.length

    def plan(
        self, source_lengths: Sizes | None, target_lengths: Sizes, seed: int, epoch: int
    ) -> list[Sizes]:
        self.refuse_too_long(source_lengths, target_lengths)
        shuffled = np.random.default_rng([seed, epoch]).permutation(len(target_lengths))
        starts = range(0, len(shuffled), self.rows)
        return [shuffled[start : start + self.rows] for start in starts]

    def refuse_too_long(self, source_lengths: Sizes | None, target_lengths: Sizes) -> None:
        if self.length > self.budget:
            raise ConfigError(
                f"data.train.length: a window of {self.length} tokens is longer than a whole batch "
                f"(training.batch_tokens = {self.budget}); make it shorter, or batches larger"
            )

    def gather(self, corpus: Examples, indices: Sizes) -> Batch:
        assert isinstance(corpus, WindowedText), "only running text has windows"
        return corpus.windows.gather(indices, self.rows)
