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
class Nothing:
    """No source: the decoder alone, a language model."""


Source = Tokens | Nothing
Target = Tokens


@dataclass(frozen=True)
class Signature:
    """What a model reads and what it puts out."""

    source: Source
    target: Target
    shared: bool
    """Source and target ids mean the same pieces, so their embeddings may be one matrix."""
