"""`Task` is the interface between a task and training. `ModelInput` is one input of a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from torch import Tensor

from seqloom.config.schema.recipe import RunConfig
from seqloom.core.batch import Batch, Source
from seqloom.core.signature import Signature
from seqloom.data.corpus.dataset import Dataset, ProgressCallback
from seqloom.data.example import Split
from seqloom.data.modalities.modality import SourceInput
from seqloom.decoding.search import ExcludedTokens
from seqloom.models.seq2seq import Model
from seqloom.tasks.losses import LIKELIHOOD, Objective
from seqloom.text.glossary import RequiredPhrase


@dataclass(frozen=True)
class ModelInput:
    """One input, ready for a model.

    source:        the source; None if the task has none
    prefix:        token ids that the output must start with
    max_length:    maximum number of output tokens, END included; None if the task sets no maximum
    hidden_prefix: number of tokens at the start of the prefix that are not displayed, such as a
                   language tag
    required_phrases: phrases that the output must contain, each as often as it is listed here
    excluded:      tokens and token sequences that the output must not contain after its prefix;
                   None if there are none
    """

    source: SourceInput | None
    prefix: tuple[int, ...]
    max_length: int | None = None
    hidden_prefix: int = 0
    required_phrases: tuple[RequiredPhrase, ...] = ()
    excluded: ExcludedTokens | None = None

    @property
    def source_length(self) -> int | None:
        """Number of source positions, without END. None if there is no source, or if it is not a
        sequence."""
        return None if self.source is None else self.source.length

    @property
    def source_tokens(self) -> tuple[int, ...]:
        """The source token ids, without END. Empty if the source is not text."""
        return () if self.source is None else self.source.tokens


def collate_sources(inputs: Sequence[ModelInput]) -> Source | None:
    """Build the source side of a batch, one input per row. Return None if there are no sources.

    inputs: inputs of one task
    """
    sources = [one.source for one in inputs if one.source is not None]
    return sources[0].collate(sources) if sources else None


class Task(Protocol):
    """The methods of a task that training uses."""

    signature: Signature

    @classmethod
    def learn(cls, config: RunConfig, progress: ProgressCallback) -> Self:
        """Build the task of a new run. What must be known is computed from the training split.

        progress: called if another process computes the same, or if cached files are damaged
        """
        ...

    @classmethod
    def load(cls, config: RunConfig, folder: Path) -> Self:
        """Load the task of an existing run from the files that `save` wrote."""
        ...

    def save(self, folder: Path) -> None:
        """Save what was computed from the data before training.

        A task with token outputs saves its tokenizers. A task with vectors as sources saves the
        numbers that normalise them.
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
