"""The interface of a modality: a kind of source, such as text, images or sequences of vectors."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from seqloom.config.schema.recipe import RunConfig
from seqloom.core.signature import SourceSpec
from seqloom.data.corpus.dataset import IntArray
from seqloom.data.corpus.token_store import TokenRows
from seqloom.data.example import Example
from seqloom.text.tokenizer import Tokenizer

if TYPE_CHECKING:  # imports torch, which takes seconds, and worker processes do not need it
    from seqloom.core.batch import Source


class SourceInput(ABC):
    """One source, ready for a model."""

    tokens: tuple[int, ...] = ()
    """The token ids of a text, without END. Empty for all other sources."""

    @property
    @abstractmethod
    def length(self) -> int | None:
        """Number of positions without END. None if the source is not a sequence, such as an image."""

    @property
    def size(self) -> int:
        """Number of tokens for which the source counts in the token budget of a batch."""
        return (self.length or 0) + 1

    @classmethod
    @abstractmethod
    def collate(cls, inputs: Sequence[Self]) -> "Source":
        """Build the source side of a batch, one input per row."""


class SourceStore(Protocol):
    """Reads the sources of a corpus on disk."""

    @property
    def lengths(self) -> IntArray | None:
        """(N,) number of positions of each source, without END; None if they are not sequences."""
        ...

    def take(self, indices: IntArray) -> "Source | TokenRows":
        """Return the sources at `indices`, in this order."""
        ...

    def release(self) -> None:
        """Free the memory of memory-mapped data. The data is read from disk again when needed."""
        ...


class SourceWriter(ABC):
    """Writes the sources of one shard to the files that a `SourceStore` reads.

    tokens:  number of tokens or frames written so far
    unknown: number of unknown tokens among them
    """

    tokens: int = 0
    unknown: int = 0

    def encode(self, texts: Sequence[str]) -> Sequence[Any]:
        """Convert the sources of several examples to what `length` and `append` take.

        Default: the texts themselves."""
        return texts

    @abstractmethod
    def length(self, encoded: Any) -> int | None:
        """Return the number of positions of an encoded source, like `SourceInput.length`."""

    @abstractmethod
    def append(self, encoded: Sequence[Any], examples: Sequence[Example]) -> None:
        """Append encoded sources.

        examples: the examples of the sources, for error messages
        """

    @abstractmethod
    def close(self) -> None:
        """Write what is not yet in the files, and close them."""


class Modality(ABC):
    """A kind of source, with everything that a run has learned about its sources in training.

    A modality reads a source, stores the sources of a corpus, builds the source side of a batch, and
    names the positions of a source. `modalities/registry.py` lists all modalities.

    tokenizer: the tokenizer of the sources; None if they are not text
    """

    file: ClassVar[str]
    """A file that every shard of a corpus with such sources contains. The type of a stored corpus is
    recognised by it."""
    is_one_shard: ClassVar[bool] = True
    """True if all examples of a corpus must be in one shard."""
    tokenizer: Tokenizer | None = None

    @property
    @abstractmethod
    def spec(self) -> SourceSpec:
        """The type of the sources, from which a model is built."""

    @classmethod
    @abstractmethod
    def learn(cls, config: RunConfig, tokenizer: Tokenizer | None, sources: Iterable[str]) -> Self:
        """Return the modality of a new run.

        tokenizer: the tokenizer of the sources, if they are text
        sources:   the sources of the training split
        """

    @classmethod
    @abstractmethod
    def load(cls, config: RunConfig, folder: Path) -> Self:
        """Load the modality of a run from the files that `save` wrote."""

    def save(self, folder: Path) -> None:
        """Save what `learn` computed. Default: do nothing."""
        return

    @abstractmethod
    def prepare(self, text: str) -> SourceInput:
        """Read one source.

        text: `Example.source`: the text itself, the path of an image, or frames written as text
        """

    def pieces(self, source: SourceInput) -> tuple[str, ...]:
        """Return a label for each position of a source, END included. Default: no labels."""
        return ()

    @property
    def identity(self) -> list[Any]:
        """What determines the stored sources of given examples, as a list for a cache key.

        The tokenizer is part of the key anyway. Default: nothing else"""
        return []

    @abstractmethod
    def writer(self, folder: Path) -> SourceWriter:
        """Return a writer for the sources of a shard."""

    @classmethod
    @abstractmethod
    def open(cls, folder: Path, shards: Sequence[Path]) -> SourceStore:
        """Open the sources of a corpus.

        folder: folder of the corpus
        shards: folders of its shards
        """
