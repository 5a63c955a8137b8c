"""Windows of numbers, to be put into batches."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from seqloom.core.batch import Batch, Padded
from seqloom.data.examples import CorpusReport, Sizes
from seqloom.data.scale import Form, Scale, formed
from seqloom.data.series import Window

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Windows:
    """All of one size, scaled and in their form.

    observed: (N, S, D + C)
    future:   (N, T, D)
    context:  (N, T, C)
    turns:    the seed by which they are turned, anew in every epoch; None: they are not
    """

    observed: Floats
    future: Floats
    context: Floats
    report: CorpusReport
    turns: int | None = None

    @classmethod
    def of(
        cls, windows: list[Window], form: Form, scale: Scale, split: str, turns: int | None = None
    ) -> Self:
        columns = windows[0].future.shape[1]
        pairs = [formed(one, form) for one in windows]
        observed, ahead = (
            ((np.stack(side) - scale.mean) / scale.deviation).astype(np.float32)
            for side in zip(*pairs, strict=True)
        )
        return cls(
            observed,
            ahead[..., :columns],
            ahead[..., columns:],
            CorpusReport(split, read=len(windows), kept=len(windows)),
            turns,
        )

    def __len__(self) -> int:
        return len(self.future)

    @cached_property
    def digest(self) -> str:
        found = hashlib.sha256()
        for part in (self.observed, self.future, self.context):
            found.update(np.ascontiguousarray(part).tobytes())
        return found.hexdigest()

    @property
    def source_lengths(self) -> Sizes | None:
        return np.full(len(self), self.observed.shape[1] - 1)

    @property
    def target_lengths(self) -> Sizes:
        """One less than there are, since batches count a START or an END on top."""
        return np.full(len(self), self.future.shape[1] - 1)

    def gather(self, indices: Sizes) -> Batch:
        """inputs: at each step the row before it, beginning with the last observed one, and the
        context of the step itself; targets: the rows to come."""
        observed, future = self.observed[indices], self.future[indices]
        first = observed[:, -1:, : future.shape[2]]
        before = np.concatenate([first, future[:, :-1]], axis=1)
        inputs = np.concatenate([before, self.context[indices]], axis=2)
        return Batch(_padded(observed), _padded(inputs), _padded(future))

    def for_epoch(self, epoch: int) -> "Windows":
        """Turned by angles of its own in every epoch, if they are to be turned."""
        if self.turns is None:
            return self
        generator = np.random.default_rng([self.turns, epoch])
        angle = generator.uniform(0, 2 * np.pi, len(self))
        mirrored = generator.choice([-1.0, 1.0], len(self))
        cosine, sine = np.cos(angle), np.sin(angle)
        # Rows times this: a rotation of the plane, and before it perhaps a mirror.
        turn = np.stack(
            [np.stack([cosine * mirrored, sine * mirrored], -1), np.stack([-sine, cosine], -1)], 1
        )  # (N, 2, 2)
        turned = [np.einsum("ntd,nde->nte", part, turn) for part in (self.observed, self.future)]
        observed, future = (part.astype(np.float32) for part in turned)
        return replace(self, observed=observed, future=future)

    def variants(self) -> Iterator["Windows"]:
        """Sizes never change: one stands for all."""
        return iter([self])

    def release(self) -> None:
        """They are small, and stay."""


def _padded(rows: Floats) -> Padded:
    values = torch.from_numpy(np.ascontiguousarray(rows))
    return Padded(values, torch.full((len(rows),), rows.shape[1]))
