"""Stopping rules of beam search that compare scores of finished and unfinished hypotheses."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from seqloom.decoding.hypothesis import LengthNormalisation
from seqloom.decoding.rules import FORBIDDEN


@dataclass(frozen=True)
class ScoreRule:
    """Stops the search for a source when its unfinished hypotheses cannot improve the result.

    The result consists of the `count` best finished hypotheses. The search stops when there
    are `count` finished hypotheses with at least the score of the best unfinished hypothesis.

    kind: The score of an unfinished hypothesis is log p / length^penalty. `kind` says which length
          is used:
          "estimate": its current length, like `early_stopping=False` in transformers
          "bound":    the maximum length, like `early_stopping="never"` in transformers. No
                      extension of the hypothesis can reach a higher score, because further tokens
                      only lower log p. The search therefore never misses a better output
    """

    kind: Literal["estimate", "bound"]
    count: int
    normalisation: LengthNormalisation

    def add_finished(
        self, scores: Tensor, totals: Tensor, ended: Tensor, length: int | Tensor
    ) -> Tensor:
        """Return the C best scores of finished hypotheses after a step: (B, C), best first

        C is `self.count`.

        scores: (B, C) the best scores before the step; -inf if fewer than C hypotheses have ended
        totals: (B, K) log-probability of each candidate of the step
        ended:  (B, K) True for the candidates that end in this step
        length: number of tokens of these candidates, END included
        """
        new_scores = self.normalisation.score(totals, length, True)
        merged = torch.cat([scores, new_scores.masked_fill(~ended, FORBIDDEN)], dim=1)
        return merged.topk(self.count, dim=1).values

    def is_over(
        self, scores: Tensor, active: Tensor, length: int | Tensor, max_lengths: Tensor
    ) -> Tensor:
        """Return True for each source for which the search stops: (B,)

        scores:      (B, C) the C best scores of finished hypotheses, best first
        active:      (B,)   log-probability of the best unfinished hypothesis
        length:      number of tokens of the unfinished hypotheses
        max_lengths: (B,)   maximum number of tokens of a hypothesis
        """
        best_length = max_lengths if self.kind == "bound" else length
        return self.normalisation.score(active, best_length, False) <= scores[:, -1]
