"""What a decoder has to say about all positions at once, before it is spelled out."""

from dataclasses import dataclass

from torch import Tensor

from seqloom.nn.copying import Copyable, Copying
from seqloom.nn.embedding import Readout


@dataclass(frozen=True)
class Taught:
    """Features (B, T, D), and the readout that knows what they mean.

    Scores over the vocabulary are the largest tensor of all: a loss that asks for itself need
    never hold all of them.
    """

    features: Tensor
    readout: Readout

    def logits(self) -> Tensor:
        """(B, T, V) unnormalised scores of every token at every position."""
        return self.readout(self.features)

    def loss(self, targets: Tensor, smoothing: float, padding: int) -> Tensor:
        """Σ -log p(target) over the targets (B, T) that are not padding -> ()"""
        return self.readout.loss(self.features, targets, smoothing, padding)


@dataclass(frozen=True)
class TaughtToCopy(Taught):
    """Words of its own mixed with those of the source."""

    copying: Copying
    source: Copyable

    def logits(self) -> Tensor:
        """(B, T, V) log-probabilities."""
        return self.copying.mix(self.readout(self.features), self.features, self.source)

    def loss(self, targets: Tensor, smoothing: float, padding: int) -> Tensor:
        logits = self.readout(self.features)
        losses = self.copying.loss(logits, self.features, self.source, targets, smoothing)
        return (losses * (targets != padding)).sum()
