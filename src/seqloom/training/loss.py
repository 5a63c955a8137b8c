"""The loss of a training batch, as the recipe defines it."""

import torch
from torch import Tensor

from seqloom.core.batch import Batch
from seqloom.tasks.objective import Objective
from seqloom.training.schedule import target_share, uses_minimum_risk
from seqloom.training.scheduled_sampling import mix_decoder_inputs
from seqloom.training.session import Session


def batch_loss(session: Session, step: int, batch: Batch) -> Tensor:
    """The summed loss of a batch at a step, with the recipe's decoder inputs and precision."""
    settings = session.config.training
    risk = settings.minimum_risk if uses_minimum_risk(settings, step) else None
    objective = Objective(settings.label_smoothing, settings.r_drop, risk)
    # bf16 arithmetic with fp32 weights.
    is_bf16 = session.precision == "bf16"
    with torch.autocast(session.world.device.type, dtype=torch.bfloat16, enabled=is_bf16):
        mixed = mix_decoder_inputs(session.model, batch, target_share(settings.decoder_input, step))
        return session.task.loss(session.model, mixed, objective)
