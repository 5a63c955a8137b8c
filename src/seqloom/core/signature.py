"""The types of a model's inputs and outputs.

`models/build.py` reads nothing about a task except its `Signature`. The signature determines
whether the model has an encoder, and the sizes of the embeddings and the output layer.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tokens:
    """Token ids from 0 to `count` - 1."""

    count: int


@dataclass(frozen=True)
class Vectors:
    """A vector of `width` real numbers at every position."""

    width: int


@dataclass(frozen=True)
class Pixels:
    """Images of `height` by `width` pixels with `channels` colour channels."""

    channels: int
    height: int
    width: int


@dataclass(frozen=True)
class NoSource:
    """No source: the model is a decoder only (a language model)."""


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
