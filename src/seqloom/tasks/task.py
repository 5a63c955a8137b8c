"""The interface of a task. Training, search and evaluation use a task only through it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from torch import Tensor

from seqloom.config.schema.recipe import RunConfig
from seqloom.core.batch import Batch
from seqloom.core.signature import Signature
from seqloom.data.corpus.dataset import Dataset
from seqloom.data.example import Split
from seqloom.data.readers.images import Pixels
from seqloom.models.seq2seq import Model
from seqloom.tasks.losses import LIKELIHOOD, Objective


@dataclass(frozen=True)
class ModelInput:
    """One input, ready for a model.

    source:        source token ids; None without a source or for an image
    prefix:        token ids that the output must start with
    image:         (3, height, width); None without an image
    max_length:    maximum number of output tokens, END included, if the task defines it
    hidden_prefix: number of prefix tokens that are not part of the displayed text (a language tag)
    """

    source: tuple[int, ...] | None
    prefix: tuple[int, ...]
    image: Pixels | None = None
    max_length: int | None = None
    hidden_prefix: int = 0


class Task(Protocol):
    """The part of a task that training uses."""

    signature: Signature

    def save(self, folder: Path) -> None:
        """Write what was learned from the data before training: a vocabulary or a scale."""
        ...

    def corpus(self, config: RunConfig, split: Split, progress: Callable[[int], None]) -> Dataset:
        """The examples of a split, ready for batching."""
        ...

    def loss(self, model: Model, batch: Batch, objective: Objective = LIKELIHOOD) -> Tensor:
        """The loss of a batch, summed over targets. `training/step.py` divides it."""
        ...
