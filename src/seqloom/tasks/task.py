"""`Task` is the interface between a task and training. `ModelInput` is one input of a model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from torch import Tensor

from seqloom.config.schema.recipe import RunConfig
from seqloom.core.batch import Batch
from seqloom.core.signature import Signature
from seqloom.data.corpus.dataset import Dataset, ProgressCallback
from seqloom.data.corpus.frame_store import Frames
from seqloom.data.example import Split
from seqloom.data.readers.images import Pixels
from seqloom.decoding.search import ExcludedTokens
from seqloom.models.seq2seq import Model
from seqloom.tasks.losses import LIKELIHOOD, Objective
from seqloom.text.glossary import RequiredPhrase


@dataclass(frozen=True)
class ModelInput:
    """One input, ready for a model.

    source:        source token ids; None if the source is not text or there is no source
    prefix:        token ids that the output must start with
    image:         (3, height, width) pixels; None if the source is not an image
    max_length:    maximum number of output tokens, END included; None if the task sets no maximum
    hidden_prefix: number of tokens at the start of the prefix that are not displayed, such as a
                   language tag
    frames:        (S, D) normalised vectors; None if the source is not a sequence of vectors
    required_phrases: phrases that the output must contain, each as often as it is listed here
    excluded:      tokens and token sequences that the output must not contain after its prefix;
                   None if there are none
    """

    source: tuple[int, ...] | None
    prefix: tuple[int, ...]
    image: Pixels | None = None
    max_length: int | None = None
    hidden_prefix: int = 0
    frames: Frames | None = None
    required_phrases: tuple[RequiredPhrase, ...] = ()
    excluded: ExcludedTokens | None = None

    @property
    def source_length(self) -> int:
        """Number of source tokens or frames, without END."""
        return len(self.source or ()) if self.frames is None else len(self.frames)


class Task(Protocol):
    """The methods of a task that training uses."""

    signature: Signature

    def save(self, folder: Path) -> None:
        """Save what was computed from the data before training.

        A task with token outputs saves its tokenizers. A task with vectors as sources saves the
        scale that normalises them.
        """
        ...

    def corpus(self, config: RunConfig, split: Split, progress: ProgressCallback) -> Dataset:
        """Load the examples of a split.

        progress: called at intervals while examples are read
        """
        ...

    def loss(self, model: Model, batch: Batch, objective: Objective = LIKELIHOOD) -> Tensor:
        """Return the loss of a batch, summed over its targets.

        The training step divides this sum by the number of targets.
        """
        ...
