"""Dataset: the interface through which batching reads the examples of a split."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

if TYPE_CHECKING:  # imports torch, which takes seconds, and worker processes do not need it
    from seqloom.core.batch import Batch

IntArray = NDArray[Any]
"""Integers of any width: token ids, lengths or indices."""


@dataclass
class CorpusReport:
    """Numbers of examples and tokens in a split. Tokens of dropped examples are not counted."""

    split: str
    read: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    """Maps a reason to the number of examples dropped for this reason. The filters drop only
    training examples. Invalid lines that were skipped are included, in all splits."""
    empty: dict[str, int] = field(default_factory=dict)
    """Number of examples with an empty source, an empty target, or both. The keys are the results
    of `empty_side`. Dropped examples are included."""
    source_tokens: int = 0
    target_tokens: int = 0
    source_unknown: int = 0
    target_unknown: int = 0
    parts: list[tuple[str, int]] = field(default_factory=list)
    """(group, number of kept examples) for each sequence of examples of the same group, in the
    order in which they were read. Empty if the examples have no group names. The field is called
    `parts` in report.json and in the event log."""


@dataclass(frozen=True)
class ReadingProgress:
    """Progress of reading and tokenising a split.

    examples: number of examples read so far
    total:    number of all examples; None if it is unknown
    waits:    True if another process prepares the same data, and this process waits for it
    note:     a message for the user, for example that a file of the cache is damaged
    """

    examples: int
    total: int | None = None
    waits: bool = False
    note: str = ""


ProgressCallback = Callable[[ReadingProgress], None]


def ignore_progress(progress: ReadingProgress) -> None:
    """The default progress callback. It does nothing."""


def damage_note(files: Sequence[str]) -> ReadingProgress:
    """Return a progress report that lists damaged files of the cache.

    files: one line of text for each damaged file
    """
    listed = "".join(f"\n  {line}" for line in files)
    return ReadingProgress(
        0,
        note="prepared files have changed since they were written. They are not used and are built "
        f"again from the unchanged data:{listed}",
    )


class Dataset(Protocol):
    """The examples of a split, accessed by index."""

    @property
    def report(self) -> CorpusReport: ...

    def __len__(self) -> int: ...

    @property
    def digest(self) -> str:
        """A hash of the data. It changes if the data changes."""
        ...

    @property
    def source_lengths(self) -> IntArray | None:
        """The source length of each of the N examples, without END: (N,).

        None if there are no sources or they are images.
        """
        ...

    @property
    def target_lengths(self) -> IntArray:
        """The target length of each of the N examples, without START and END: (N,)."""
        ...

    def gather(self, indices: IntArray) -> "Batch":
        """Collate the examples at `indices` into a batch, one example per row, in this order."""
        ...

    def for_epoch(self, epoch: int) -> "Dataset":
        """Return the dataset to use in an epoch.

        It contains the same data. Texts can have another subword segmentation, windows of a series
        can be rotated by other angles, and windows of a long text can have other positions.
        """
        ...

    def variants(self) -> Iterator["Dataset"]:
        """Yield the datasets that `for_epoch` can return.

        The caller checks that no example of these datasets is too long for a batch. If the lengths
        of the examples are the same in all epochs, this method yields only one dataset.
        """
        ...

    def release(self) -> None:
        """Free the memory of memory-mapped data. The data is read from disk again when needed."""
        ...
