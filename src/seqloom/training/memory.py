"""How much memory a training step will need, found out before it is needed."""

from dataclasses import dataclass

import torch
from torch import Tensor

from seqloom.core.sequences import Batch, Images, Padded, Source
from seqloom.core.signature import Pixels, Signature, Tokens
from seqloom.models.seq2seq import Model
from seqloom.tasks.task import Trainable

ADAM_COPIES = 4
"""Of every parameter: itself, its gradient and two moments."""


@dataclass(frozen=True)
class StepMemory:
    """Bytes.

    weights:     parameters, gradients and the optimiser's moments, there all the time
    activations: what the forward pass keeps for the backward pass, for one batch
    """

    weights: int
    activations: int

    @property
    def total(self) -> int:
        return self.weights + self.activations


def blank_batch(signature: Signature, rows: int, source_length: int, target_length: int) -> Batch:
    """A batch of this shape with nothing in it but the first word of every vocabulary, and black
    images."""

    def side(length: int) -> Padded:
        values = torch.full((rows, length), 4)
        return Padded(values, torch.full((rows,), length))

    source: Source | None = None
    match signature.source:
        case Tokens():
            source = side(source_length)
        case Pixels(channels, height, width):
            source = Images(torch.zeros(rows, channels, height, width, dtype=torch.uint8))
    return Batch(source, side(target_length), side(target_length))


def step_memory(model: Model, task: Trainable, batch: Batch) -> StepMemory:
    """Run one batch forward, and count what autograd puts aside for the way back.

    In fp32 and with every activation kept, as the plain loop does.
    """
    weights = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, int] = {}

    def put_aside(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:  # a storage that many tensors look at counts once
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    model.train()
    with torch.autograd.graph.saved_tensors_hooks(put_aside, lambda tensor: tensor):
        task.loss(model, batch)
    return StepMemory(weights * ADAM_COPIES, sum(kept.values()))
