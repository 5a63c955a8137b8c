"""What the decoder is fed in training: the truth, its own words, or a mixture."""

from dataclasses import replace

import torch
from torch import Tensor

from seqloom.core.sequences import Batch, Padded
from seqloom.models.seq2seq import Model


def feed(model: Model, batch: Batch, share: float) -> Batch:
    """The batch with some true inputs replaced by what the model itself would have put out.

    A coin that shows the truth with probability `share` is thrown for every position. The model
    runs ahead once, without gradients, to find its own words; then it is taught on the mixture.
    No gradient could run through a chosen word anyway, so this is the same as feeding each word
    back as it comes. An early END is fed on like any other word: the position after it still has
    a true answer, and so a valid loss.
    """
    if share >= 1:
        return batch
    was_training = model.training
    model.eval()
    try:
        fed = _run_ahead(model, batch, share)
    finally:  # also when memory runs out: then the step is taken again, in parts
        model.train(was_training)
    return replace(batch, inputs=Padded(fed, batch.inputs.lengths))


@torch.no_grad()
def _run_ahead(model: Model, batch: Batch, share: float) -> Tensor:
    """(B, T) what the decoder is fed, found out word by word."""
    assert batch.packing is None, "a search knows one pair a row"
    truth = batch.inputs.values  # (B, T)
    memory = model.encode(batch.source, batch.size)
    state = model.decoder.start(memory, truth.shape[1], need_attention=False)
    fed = [truth[:, 0]]  # START is always true
    for position in range(1, truth.shape[1]):
        step = model.decoder.step(fed[-1], state)
        state = step.state
        shows_truth = torch.rand(batch.size, device=truth.device) < share
        fed.append(torch.where(shows_truth, truth[:, position], step.logits.argmax(-1)))
    return torch.stack(fed, dim=1)
