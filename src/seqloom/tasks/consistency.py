"""R-Drop: a model that is asked twice, with different dropout, should answer the same."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from seqloom.core.sequences import Batch
from seqloom.models.seq2seq import Model
from seqloom.text.vocabulary import PAD


@dataclass(frozen=True)
class Answers:
    """The log-probabilities of one pass: (B, T, V), in float32 at least; 0 in place of -inf, so
    that what a model never puts out adds nothing to any sum."""

    log_probabilities: Tensor

    @classmethod
    def of(cls, model: Model, batch: Batch) -> "Answers":
        logits = model(batch).logits()  # (B, T, V)
        exact = logits.float() if logits.dtype == torch.bfloat16 else logits
        logs = exact.log_softmax(dim=-1)
        return cls(logs.masked_fill(logs == float("-inf"), 0.0))

    def cross_entropy(self, targets: Tensor, smoothing: float) -> Tensor:
        """Σ -log p(target) over the real positions, smoothed: (B, T) -> ()"""
        logs = self.log_probabilities
        own = F.nll_loss(logs.flatten(0, 1), targets.flatten(), ignore_index=PAD, reduction="sum")
        if not smoothing:
            return own
        spread = -(logs.mean(-1) * (targets != PAD)).sum()
        return (1 - smoothing) * own + smoothing * spread


def symmetric_divergence(one: Answers, other: Answers, targets: Tensor) -> Tensor:
    """Σ KL(p‖q) + KL(q‖p) over the real positions of the targets (B, T) -> ()

    Both at once: Σ_v p (log p - log q) + q (log q - log p) = Σ_v (p - q) (log p - log q).
    """
    p, q = one.log_probabilities, other.log_probabilities
    divergence = ((p.exp() - q.exp()) * (p - q)).sum(-1)  # (B, T)
    return (divergence * (targets != PAD)).sum()


def r_drop_loss(model: Model, batch: Batch, smoothing: float, weight: float) -> Tensor:
    """Σ ½ (CE₁ + CE₂) + ¼ weight (KL(p₁‖p₂) + KL(p₂‖p₁))    (Liang et al. 2021)

    Half of the paper's loss, so that `weight` is the paper's α and the first half can be compared
    with the loss of one pass. Padding is multiplied away rather than left out: every tensor has a
    shape that the batch's shape decides, as a recorded CUDA graph needs.
    """
    # Lengths say what is real, whatever lies behind them.
    targets = batch.targets.values.masked_fill(~batch.targets.mask, PAD)
    one, other = Answers.of(model, batch), Answers.of(model, batch)
    truth = one.cross_entropy(targets, smoothing) + other.cross_entropy(targets, smoothing)
    return truth / 2 + weight / 4 * symmetric_divergence(one, other, targets)
