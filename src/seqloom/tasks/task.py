"""The contract of a task. Training, search and evaluation know a task only by this."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from torch import Tensor

from seqloom.config.run import RunConfig
from seqloom.core.sequences import Batch
from seqloom.core.signature import Signature
from seqloom.data.example import Split
from seqloom.data.examples import Examples
from seqloom.data.images import Pixels
from seqloom.models.seq2seq import Model
from seqloom.tasks.objective import LIKELIHOOD, Objective


@dataclass(frozen=True)
class Prepared:
    """One input as a model takes it in.

    source: the ids that are read; None: nothing, or an image
    prefix: how the output must begin
    image:  (3, height, width) the image that is looked at; None: none is
    length: tokens that the output may have, END included, where the task knows it
    hidden: tokens at the head of the prefix that are no part of what is shown: a tag
    """

    source: tuple[int, ...] | None
    prefix: tuple[int, ...]
    image: Pixels | None = None
    length: int | None = None
    hidden: int = 0


class Trainable(Protocol):
    """What training needs to know of a task."""

    signature: Signature

    def save(self, folder: Path) -> None:
        """Write all that was learned from the data before the model (a vocabulary, a scale)."""
        ...

    def corpus(self, config: RunConfig, split: Split, progress: Callable[[int], None]) -> Examples:
        """The examples of a split, ready to be put into batches."""
        ...

    def loss(self, model: Model, batch: Batch, objective: Objective = LIKELIHOOD) -> Tensor:
        """The summed loss of a batch; dividing it is not a task's business."""
        ...
