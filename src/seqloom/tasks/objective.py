"""Objective: what a loss is made of."""

from dataclasses import dataclass

from seqloom.config.training import RiskConfig


@dataclass(frozen=True)
class Objective:
    """-log p of the truth, and what is done to it.

    smoothing: of the truth's labels
    r_drop:    the weight of the difference between two passes; 0 makes one pass
    risk:      how outputs of the model's own are drawn and judged; None: the truth alone teaches
    """

    smoothing: float = 0.0
    r_drop: float = 0.0
    risk: RiskConfig | None = None


LIKELIHOOD = Objective()
"""How probable the truth is, and nothing else."""
