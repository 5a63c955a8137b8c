"""Objective: the terms of a training loss."""

from dataclasses import dataclass

from seqloom.config.schema.training import MinimumRiskConfig


@dataclass(frozen=True)
class Objective:
    """The terms of the loss, besides the negative log-likelihood of the targets.

    smoothing:    label smoothing ε
    r_drop:       weight of the divergence between two passes with different dropout; 0 disables it
    minimum_risk: how outputs are sampled and scored in minimum risk training; None disables it
    """

    smoothing: float = 0.0
    r_drop: float = 0.0
    minimum_risk: MinimumRiskConfig | None = None


LIKELIHOOD = Objective()
"""The negative log-likelihood alone."""
