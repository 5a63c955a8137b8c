"""SeriesDataset: a dataset in which each example is a window of a real-valued sequence."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from seqloom.core.batch import Batch, Padded
from seqloom.data.corpus.dataset import CorpusReport, IntArray
from seqloom.data.corpus.scaling import Scale, SeriesForm, to_form
from seqloom.data.readers.series import SeriesWindow

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class SeriesDataset:
    """N normalised windows with S observed rows and T rows to forecast. Each row has D columns to
    forecast and C columns of context (values known in advance).

    observed:      (N, S, D + C) observed values, with their context in the last C columns
    future:        (N, T, D) values to forecast
    context:       (N, T, C) context of the time steps to forecast
    rotation_seed: seed of the random rotations of the coordinates, which change in every epoch; None
                   for no rotations
    """

    observed: Floats
    future: Floats
    context: Floats
    report: CorpusReport
    rotation_seed: int | None = None

    @classmethod
    def of(
        cls,
        windows: list[SeriesWindow],
        form: SeriesForm,
        scale: Scale,
        split: str,
        rotation_seed: int | None = None,
        context_form: SeriesForm | None = None,
    ) -> Self:
        """Build a dataset from windows: convert them to the representation `form` (for example,
        differences) and normalise them with `scale`.

        context_form: representation of the context. Default: `form`
        """
        columns = windows[0].future.shape[1]
        converted = [to_form(window, form, context_form) for window in windows]
        observed, future = (
            ((np.stack(rows) - scale.mean) / scale.deviation).astype(np.float32)
            for rows in zip(*converted, strict=True)
        )
        return cls(
            observed,
            future[..., :columns],
            future[..., columns:],
            CorpusReport(split, read=len(windows), kept=len(windows)),
            rotation_seed,
        )

    def __len__(self) -> int:
        return len(self.future)

    @cached_property
    def digest(self) -> str:
        digest = hashlib.sha256()
        for rows in (self.observed, self.future, self.context):
            digest.update(np.ascontiguousarray(rows).tobytes())
        return digest.hexdigest()

    @property
    def source_lengths(self) -> IntArray | None:
        """(N,) source length of each of the N examples, as batching expects it.

        Batching adds one to each length for END. A series has no END, so this length is the number
        of observed rows minus one.
        """
        return np.full(len(self), self.observed.shape[1] - 1)

    @property
    def target_lengths(self) -> IntArray:
        """(N,) target length of each of the N examples, as batching expects it.

        Batching adds one to each length for START or END. A series has neither, so this length is
        the number of future rows minus one.
        """
        return np.full(len(self), self.future.shape[1] - 1)

    def gather(self, indices: IntArray) -> Batch:
        """Return a batch of windows.

        source:  (B, S, D + C) the observed rows
        inputs:  (B, T, D + C) for each time step to forecast, the values of the previous time step
                 and the context of the time step itself. At the first time step, the previous
                 values are the last observed values.
        targets: (B, T, D) the values to forecast
        """
        observed, future = self.observed[indices], self.future[indices]
        first = observed[:, -1:, : future.shape[2]]
        previous = np.concatenate([first, future[:, :-1]], axis=1)
        inputs = np.concatenate([previous, self.context[indices]], axis=2)
        return Batch(_padded(observed), _padded(inputs), _padded(future))

    def for_epoch(self, epoch: int) -> "SeriesDataset":
        """Return a copy in which each window is rotated and mirrored at random. If `rotation_seed`
        is None, return the dataset itself."""
        if self.rotation_seed is None:
            return self
        generator = np.random.default_rng([self.rotation_seed, epoch])
        angle = generator.uniform(0, 2 * np.pi, len(self))
        mirror = generator.choice([-1.0, 1.0], len(self))
        cosine, sine = np.cos(angle), np.sin(angle)
        # Multiplying a row vector by this matrix rotates it. In windows with mirror = -1, the
        # vector is also reflected, before the rotation.
        rotation = np.stack(
            [np.stack([cosine * mirror, sine * mirror], -1), np.stack([-sine, cosine], -1)], 1
        )  # (N, 2, 2)
        observed, future = (
            np.einsum("ntd,nde->nte", rows, rotation).astype(np.float32)
            for rows in (self.observed, self.future)
        )
        return replace(self, observed=observed, future=future)

    def variants(self) -> Iterator["SeriesDataset"]:
        """Yield only this dataset, because its sequences have the same lengths in every epoch."""
        return iter([self])

    def release(self) -> None:
        """Do nothing: the arrays are small and not memory-mapped."""


def _padded(rows: Floats) -> Padded:
    values = torch.from_numpy(np.ascontiguousarray(rows))
    return Padded(values, torch.full((len(rows),), rows.shape[1]))
