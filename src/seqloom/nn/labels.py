"""Features to labels. END is predicted exactly where the source ends."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from seqloom.nn.embedding import Readout

NEGATIVE_INFINITY = float("-inf")


class LabelReadout(Readout):
    """A readout that is given where the labels end.

    The last number of each feature vector is 1 if the source ends at this position, otherwise 0. If
    it ends, only END is possible; otherwise everything except END. So p(END) is 1 or 0, it adds
    nothing to the loss, and it takes no probability from the labels.

    width:      width of the features, without that last number
    end:        id of END
    impossible: ids of other tokens that are no labels
    """

    def __init__(
        self, width: int, vocabulary: int, hidden: int | None, end: int, impossible: Sequence[int]
    ) -> None:
        super().__init__(width, vocabulary, hidden, tied=None)
        self.end = end
        self.impossible = tuple(impossible)

    def forward(self, features: Tensor) -> Tensor:
        """(…, D + 1) -> (…, V)"""
        logits = super().forward(features[..., :-1])
        ends = features[..., -1:] > 0.5  # (…, 1)
        tokens = torch.arange(logits.shape[-1], device=logits.device)  # (V,)
        impossible = ends != (tokens == self.end)  # (…, V)
        for token in self.impossible:
            impossible = impossible | (tokens == token)
        return logits.masked_fill(impossible, NEGATIVE_INFINITY)

    def loss(self, features: Tensor, targets: Tensor, smoothing: float, padding: int) -> Tensor:
        """Σ -log p(target) over the targets that are not padding: (B, T, D + 1), (B, T) -> ()

        Label smoothing is spread over the possible tokens.
        """
        logits = self(features)
        exact = logits.float() if logits.dtype == torch.bfloat16 else logits
        log_probabilities = exact.log_softmax(dim=-1)  # (B, T, V)
        target_loss = F.nll_loss(
            log_probabilities.flatten(0, 1),
            targets.flatten(),
            ignore_index=padding,
            reduction="sum",
        )
        if not smoothing:
            return target_loss
        impossible = log_probabilities == NEGATIVE_INFINITY
        possible_count = (~impossible).sum(-1)  # (B, T)
        mean_loss = -(log_probabilities.masked_fill(impossible, 0.0).sum(-1) / possible_count)
        smoothed = (mean_loss * (targets != padding)).sum()
        return (1 - smoothing) * target_loss + smoothing * smoothed
