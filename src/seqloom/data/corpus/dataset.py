"""Dataset: the contract between the examples of a split and the batcher."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from numpy.typing import NDArray

from seqloom.core.batch import Batch

IntArray = NDArray[Any]
"""Integers of any width: token ids, lengths or indices."""


@dataclass
class CorpusReport:
    """Counts of the examples of a split. Token counts cover only the examples kept."""

    split: str
    read: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    """Reason -> number of dropped examples. Only training examples are ever dropped."""
    empty: dict[str, int] = field(default_factory=dict)
    """Empty side -> number of examples, dropped or not."""
    source_tokens: int = 0
    target_tokens: int = 0
    source_unknown: int = 0
    target_unknown: int = 0
    parts: list[tuple[str, int]] = field(default_factory=list)
    """(group, kept examples) in the order in which the examples were read; empty if the split has
    only one group. The field is called `parts` in report.json and in the event log."""


class Dataset(Protocol):
    """The examples of a split, accessed by index."""

    @property
    def report(self) -> CorpusReport: ...

    def __len__(self) -> int: ...

    @property
    def digest(self) -> str:
        """Equal for equal examples."""
        ...

    @property
    def source_lengths(self) -> IntArray | None:
        """(N,) source lengths without END; None if batches ignore them."""
        ...

    @property
    def target_lengths(self) -> IntArray:
        """(N,) target lengths without START and END."""
        ...

    def gather(self, indices: IntArray) -> Batch:
        """Collate the examples at `indices` into a batch, one per row, in this order."""
        ...

    def for_epoch(self, epoch: int) -> "Dataset":
        """Return the same examples as an epoch sees them: tokenised, rotated or cut differently."""
        ...

    def variants(self) -> Iterator["Dataset"]:
        """Yield each distinct dataset that `for_epoch` can return."""
        ...

    def release(self) -> None:
        """Give memory back that can be read from disk again."""
        ...
