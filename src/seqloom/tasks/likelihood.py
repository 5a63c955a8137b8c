"""The loss of every task whose targets are tokens."""

from torch import Tensor

from seqloom.core.sequences import Batch
from seqloom.models.seq2seq import Model
from seqloom.nn.losses import cross_entropy_sum


def token_loss(model: Model, batch: Batch, smoothing: float) -> Tensor:
    """Σ -log p(y_t | y_<t, source) over the real target positions of a batch."""
    features = model(batch)  # (B, T, D)
    # Padding is left out before the output layer, the widest of all: no work on what is not there.
    real = batch.targets.mask
    logits = model.decoder.readout(features[real])  # (N, V)
    return cross_entropy_sum(logits, batch.targets.values[real], smoothing)
