"""The types of a model's inputs and outputs.

`models/build.py` reads nothing about a task except its `Signature`. The signature determines
whether the model has an encoder, and the sizes of the embeddings and the output layer.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # imports torch, which takes seconds, and worker processes do not need it
    from seqloom.core.batch import Source


@dataclass(frozen=True)
class Tokens:
    """Token ids from 0 to `count` - 1."""

    count: int

    def blank(self, rows: int, length: int) -> "Source":
        """Return sources of this type. Their content does not matter."""
        import torch

        from seqloom.core.batch import Padded

        return Padded(torch.full((rows, length), 4), torch.full((rows,), length))


@dataclass(frozen=True)
class Vectors:
    """A vector of `width` real numbers at every position."""

    width: int

    def blank(self, rows: int, length: int) -> "Source":
        import torch

        from seqloom.core.batch import Padded

        return Padded(torch.zeros(rows, length, self.width), torch.full((rows,), length))


@dataclass(frozen=True)
class Pixels:
    """Images of `height` by `width` pixels with `channels` colour channels."""

    channels: int
    height: int
    width: int

    def blank(self, rows: int, length: int) -> "Source":
        """Return black images. `length` has no meaning for images."""
        import torch

        from seqloom.core.batch import Images

        shape = (rows, self.channels, self.height, self.width)
        return Images(torch.zeros(shape, dtype=torch.uint8))


@dataclass(frozen=True)
class NoSource:
    """No source: the model is a decoder only (a language model)."""

    def blank(self, rows: int, length: int) -> None:
        return None


SourceSpec = Tokens | Vectors | Pixels | NoSource
TargetSpec = Tokens | Vectors


@dataclass(frozen=True)
class Signature:
    """The types of a model's source and target."""

    source: SourceSpec
    target: TargetSpec
    shared: bool
    """True if source and target use the same vocabulary, so that embeddings can be shared."""
    context: int = 0
    """For targets that are vectors: number of context values that the decoder reads at every step,
    in addition to the previous vector. Context values are known in advance and not predicted."""
