"""R-Drop: two passes with different dropout should give the same distribution (Liang et al. 2021)."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from seqloom.core.batch import Batch
from seqloom.models.seq2seq import Model
from seqloom.text.vocabulary import PAD


@dataclass(frozen=True)
class PassOutput:
    """The log-probabilities (B, T, V) of one pass, in float32 or wider.

    -inf is replaced by 0, so that impossible tokens add nothing to any sum.
    """

    log_probabilities: Tensor

    @classmethod
    def compute(cls, model: Model, batch: Batch) -> "PassOutput":
        logits = model(batch).logits()  # (B, T, V)
        wide = logits.float() if logits.dtype == torch.bfloat16 else logits
        log_probabilities = wide.log_softmax(dim=-1)
        return cls(log_probabilities.masked_fill(log_probabilities == float("-inf"), 0.0))

    def cross_entropy(self, targets: Tensor, smoothing: float) -> Tensor:
        """Σ -log p(target) over the real positions, with label smoothing: (B, T) -> ()"""
        log_p = self.log_probabilities
        nll = F.nll_loss(log_p.flatten(0, 1), targets.flatten(), ignore_index=PAD, reduction="sum")
        if not smoothing:
            return nll
        uniform = -(log_p.mean(-1) * (targets != PAD)).sum()
        return (1 - smoothing) * nll + smoothing * uniform


def symmetric_divergence(first: PassOutput, second: PassOutput, targets: Tensor) -> Tensor:
    """Σ KL(p‖q) + KL(q‖p) over the real positions of the targets (B, T) -> ()

    Computed together: Σ_v p (log p - log q) + q (log q - log p) = Σ_v (p - q) (log p - log q).
    """
    log_p, log_q = first.log_probabilities, second.log_probabilities
    divergence = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(-1)  # (B, T)
    return (divergence * (targets != PAD)).sum()


def r_drop_loss(model: Model, batch: Batch, smoothing: float, weight: float) -> Tensor:
    """Σ ½ (CE₁ + CE₂) + ¼ weight (KL(p₁‖p₂) + KL(p₂‖p₁))    (Liang et al. 2021)

    This is half of the paper's loss: `weight` is the paper's α, and the first term is comparable
    to the loss of one pass. Padding is multiplied by zero instead of removed, because a CUDA graph
    needs tensor shapes that depend on the batch shape only.
    """
    # The lengths define which positions are real, whatever the padding contains.
    targets = batch.targets.values.masked_fill(~batch.targets.mask, PAD)
    first, second = PassOutput.compute(model, batch), PassOutput.compute(model, batch)
    nll = first.cross_entropy(targets, smoothing) + second.cross_entropy(targets, smoothing)
    return nll / 2 + weight / 4 * symmetric_divergence(first, second, targets)
