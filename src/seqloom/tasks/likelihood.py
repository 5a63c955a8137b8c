"""The loss of every task whose targets are tokens."""

from torch import Tensor

from seqloom.core.sequences import Batch
from seqloom.models.seq2seq import Model
from seqloom.text.vocabulary import PAD


def token_loss(model: Model, batch: Batch, smoothing: float) -> Tensor:
    """Σ -log p(y_t | y_<t, source) over the real target positions of a batch."""
    # Lengths say what is real, whatever lies behind them.
    answers = batch.targets.values.masked_fill(~batch.targets.mask, PAD)
    loss: Tensor = model(batch).loss(answers, smoothing, PAD)
    return loss
