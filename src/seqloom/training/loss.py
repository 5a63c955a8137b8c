"""Computes the loss of a training batch, as the recipe defines it."""

from dataclasses import replace

import torch
from torch import Tensor

from seqloom.core.batch import Batch, Padded
from seqloom.core.signature import Vectors
from seqloom.models.seq2seq import Model
from seqloom.tasks.losses import Objective
from seqloom.training.schedule import target_share, uses_minimum_risk
from seqloom.training.session import Session


def batch_loss(session: Session, step: int, batch: Batch) -> Tensor:
    """Compute the loss of a batch, summed over its targets.

    step: number of the training step. The loss depends on it if the recipe uses scheduled sampling
          or minimum risk training
    """
    settings = session.config.training
    risk = settings.minimum_risk if uses_minimum_risk(settings, step) else None
    share = target_share(session.config.decoder_input, step)
    is_regression = isinstance(session.task.signature.target, Vectors)
    objective = Objective(
        settings.label_smoothing, settings.r_drop, risk, share if is_regression else None
    )
    # The weights are fp32, the arithmetic may be bf16.
    is_bf16 = session.precision == "bf16"
    with torch.autocast(session.world.device.type, dtype=torch.bfloat16, enabled=is_bf16):
        # The choice of a token has no gradient, so its inputs can be computed first. Gradients flow
        # through predicted vectors, so the task itself mixes them with the targets.
        mixed = batch if is_regression else mix_decoder_inputs(session.model, batch, share)
        return session.task.loss(session.model, mixed, objective)


def mix_decoder_inputs(model: Model, batch: Batch, target_share: float) -> Batch:
    """Replace some target tokens in the decoder input by the model's own predictions.

    target_share: probability, at each position, that the decoder input is the target token. 1 is
                  teacher forcing, 0 is free running, other values are scheduled sampling

    This function generates the decoder inputs step by step, without gradients and dropout. The
    caller then computes the loss on these inputs as in teacher forcing. Generating without gradients
    loses none, because no gradient flows through the choice of a token.

    If the model predicts END too early, END is the next input. Generation continues, because the
    following positions still have targets.
    """
    if target_share >= 1:
        return batch
    was_training = model.training
    model.eval()
    try:
        mixed = _predict_inputs(model, batch, target_share)
    finally:  # after an out-of-memory error, training continues with smaller batches
        model.train(was_training)
    return replace(batch, inputs=Padded(mixed, batch.inputs.lengths))


@torch.no_grad()
def _predict_inputs(model: Model, batch: Batch, target_share: float) -> Tensor:
    """Choose each decoder input: the target token or the model's prediction. Returns (B, T).

    target_share: probability of the target token
    """
    assert batch.packing is None, "stepwise decoding needs one pair per row"
    targets = batch.inputs.values  # (B, T)
    memory = model.encode(batch.source, batch.size)
    state = model.decoder.start(memory, targets.shape[1], need_attention=False)
    inputs = [targets[:, 0]]  # always START
    for position in range(1, targets.shape[1]):
        step = model.decoder.step(inputs[-1], state)
        state = step.state
        use_target = torch.rand(batch.size, device=targets.device) < target_share
        inputs.append(torch.where(use_target, targets[:, position], step.logits.argmax(-1)))
    return torch.stack(inputs, dim=1)
