"""The training loss of a batch of tokens, without a task."""

from torch import Tensor

from seqloom.core.batch import Batch
from seqloom.models.seq2seq import Model
from seqloom.text.vocabulary import PAD


def token_loss(model: Model, batch: Batch, smoothing: float) -> Tensor:
    """Σ -log p(y_t | y_<t, source) over the real target positions of a batch."""
    targets = batch.targets.values.masked_fill(~batch.targets.mask, PAD)
    loss: Tensor = model(batch).loss(targets, smoothing, PAD)
    return loss
