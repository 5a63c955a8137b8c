"""Features to labels, and to END exactly where the source has its END."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from seqloom.nn.embedding import Readout

NEVER = float("-inf")


class LabelReadout(Readout):
    """A readout that knows where the labels end.

    The last number of each feature vector says whether the source ends here (1) or not (0): where
    it does only END is possible, and elsewhere everything but END. So p(END) is 1 or 0, costs
    nothing, and takes nothing away from the labels.
    """

    def __init__(
        self, width: int, vocabulary: int, hidden: int | None, end: int, never: Sequence[int]
    ) -> None:
        """width: of the features, without the number that says where the source ends
        never: further tokens that are no labels
        """
        super().__init__(width, vocabulary, hidden, tied=None)
        self.end = end
        self.never = tuple(never)

    def forward(self, features: Tensor) -> Tensor:
        """(…, D + 1) -> (…, V)"""
        logits = super().forward(features[..., :-1])
        ends = features[..., -1:] > 0.5  # (…, 1)
        tokens = torch.arange(logits.shape[-1], device=logits.device)  # (V,)
        impossible = ends != (tokens == self.end)  # (…, V)
        for token in self.never:
            impossible = impossible | (tokens == token)
        return logits.masked_fill(impossible, NEVER)

    def loss(self, features: Tensor, targets: Tensor, smoothing: float, padding: int) -> Tensor:
        """Σ -log p(target) over the targets that are not padding: (B, T, D + 1), (B, T) -> ()

        Smoothing is spread over what is possible.
        """
        logits = self(features)
        exact = logits.float() if logits.dtype == torch.bfloat16 else logits
        logs = exact.log_softmax(dim=-1)  # (B, T, V)
        own = F.nll_loss(
            logs.flatten(0, 1), targets.flatten(), ignore_index=padding, reduction="sum"
        )
        if not smoothing:
            return own
        impossible = logs == NEVER
        choices = (~impossible).sum(-1)  # (B, T)
        spread = -(logs.masked_fill(impossible, 0.0).sum(-1) / choices)
        return (1 - smoothing) * own + smoothing * (spread * (targets != padding)).sum()
