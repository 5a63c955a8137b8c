"""Estimates the memory that a training step needs."""

from dataclasses import dataclass

import torch
from torch import Tensor

from seqloom.core.batch import Batch, Padded
from seqloom.core.signature import Signature
from seqloom.models.seq2seq import Model
from seqloom.tasks.task import Task

ADAM_COPIES = 4
"""Number of tensors that Adam needs per parameter: the weight, its gradient and two moments."""


@dataclass(frozen=True)
class StepMemory:
    """Memory of a training step in bytes.

    weights:     parameters, gradients and optimiser moments
    activations: tensors that the forward pass saves for the backward pass, for one batch
    """

    weights: int
    activations: int

    @property
    def total(self) -> int:
        return self.weights + self.activations


def blank_batch(signature: Signature, rows: int, source_length: int, target_length: int) -> Batch:
    """Build a batch of this shape for a memory estimate. Its content does not matter.

    All tokens are the same, vectors are zero, and images are black.

    rows: number of examples in the batch
    """

    def tokens(length: int) -> Padded:
        values = torch.full((rows, length), 4)
        return Padded(values, torch.full((rows,), length))

    source = signature.source.blank(rows, source_length)
    return Batch(source, tokens(target_length), tokens(target_length))


def step_memory(model: Model, task: Task, batch: Batch) -> StepMemory:
    """Estimate the memory of a training step with this batch.

    Runs a forward pass in fp32 and adds up the sizes of the tensors that autograd saves.
    """
    weights = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    parameter_storages = {
        parameter.untyped_storage().data_ptr() for parameter in model.parameters()
    }
    saved: dict[int, int] = {}

    def save(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        # Parameters are counted separately. The dict ensures that shared storage is counted once.
        if storage.data_ptr() not in parameter_storages:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    model.train()
    with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
        task.loss(model, batch)
    return StepMemory(weights * ADAM_COPIES, sum(saved.values()))
