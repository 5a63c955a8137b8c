"""What batches are made from, whatever the examples are."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from numpy.typing import NDArray

from seqloom.core.batch import Batch

Sizes = NDArray[Any]
"""Of any kind of integer."""


@dataclass
class CorpusReport:
    """What became of every example that was read. Counts of tokens are those of kept examples."""

    split: str
    read: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    """Reason -> how many. Only training examples are ever dropped."""
    empty: dict[str, int] = field(default_factory=dict)
    """Kind of emptiness -> how many, dropped or not."""
    source_tokens: int = 0
    target_tokens: int = 0
    source_unknown: int = 0
    target_unknown: int = 0
    parts: list[tuple[str, int]] = field(default_factory=list)
    """(part, kept examples), one after the other in the order they were read; empty if the split
    has one part only."""


class Examples(Protocol):
    """The examples of a split, by their numbers."""

    @property
    def report(self) -> CorpusReport: ...

    def __len__(self) -> int: ...

    @property
    def digest(self) -> str:
        """The same for the same examples."""
        ...

    @property
    def source_lengths(self) -> Sizes | None:
        """Without END; None where lengths of sources do not matter."""
        ...

    @property
    def target_lengths(self) -> Sizes:
        """Without START and END."""
        ...

    def gather(self, indices: Sizes) -> Batch:
        """Some of them, in this order, an example a row."""
        ...

    def for_epoch(self, epoch: int) -> "Examples":
        """The same examples as they are to be seen in this epoch."""
        ...

    def variants(self) -> Iterator["Examples"]:
        """The examples of all epochs, each way to see them once."""
        ...

    def release(self) -> None:
        """Hand back memory that can be filled again."""
        ...
