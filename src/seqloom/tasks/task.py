"""The contract of a task. Training, search and evaluation know a task only by this."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from seqloom.core.sequences import Batch
from seqloom.core.signature import Signature
from seqloom.data.example import Example
from seqloom.metrics.score import Score
from seqloom.models.seq2seq import Model
from seqloom.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Prepared:
    """One input in ids: what is read (None: nothing), and how the output must begin."""

    source: tuple[int, ...] | None
    prefix: tuple[int, ...]


class Task(Protocol):
    signature: Signature
    source_tokenizer: Tokenizer | None
    target_tokenizer: Tokenizer

    def prepare(self, text: str) -> Prepared:
        """What a user typed, as a model takes it in."""
        ...

    def question(self, example: Example) -> str:
        """What a user would type to get the example's target; blank if there is nothing to ask."""
        ...

    def loss(self, model: Model, batch: Batch, smoothing: float, r_drop: float = 0.0) -> Tensor:
        """The summed loss of a batch; dividing it is not a task's business.

        r_drop: the weight of the difference between two passes; 0 makes one pass.
        """
        ...

    def scores(self, outputs: Sequence[str], examples: Sequence[Example]) -> list[Score]:
        """How good these outputs are; empty if outputs cannot be compared with anything."""
        ...
