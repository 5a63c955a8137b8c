"""What goes into a model and what comes out of it.

The signature is all that `models/build.py` learns about a task: it decides whether there is an
encoder at all, and how many rows the embeddings and the output layer have.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tokens:
    """Ids below `count`."""

    count: int


@dataclass(frozen=True)
class Vectors:
    """Real numbers, `width` of them at every position."""

    width: int


@dataclass(frozen=True)
class Pixels:
    """Images of `channels` colours, `height` by `width`."""

    channels: int
    height: int
    width: int


@dataclass(frozen=True)
class Nothing:
    """No source: the decoder alone, a language model."""


Source = Tokens | Vectors | Pixels | Nothing
Target = Tokens | Vectors


@dataclass(frozen=True)
class Signature:
    """What a model reads and what it puts out."""

    source: Source
    target: Target
    shared: bool
    """Source and target ids mean the same pieces, so their embeddings may be one matrix."""
    context: int = 0
    """Further numbers that a decoder of vectors is told at every step."""
