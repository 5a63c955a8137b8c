"""Sharded models (FSDP): gradients, conversion to whole tensors and back, and checkpoint files.

Importing this module takes about a second, so it is imported only if it is needed.

A sharded checkpoint is a folder of safetensors files, one per rank, written and read by
`torch.distributed.checkpoint`. A job with another number of ranks, or without FSDP, can read it.
"""

import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.hf_storage import (
    HuggingFaceStorageReader,
    HuggingFaceStorageWriter,
)
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from seqloom.core.batch import Batch
from seqloom.core.errors import StorageError, TrainingError
from seqloom.models.seq2seq import Model
from seqloom.runs.checkpoint_store import COPY_RUN
from seqloom.training.distributed import World
from seqloom.training.parallel.gradients import GradientSum, LossFunction, LossModule


class Shards(GradientSum):
    """Stores only a part of each weight, gradient and optimiser moment on every rank (FSDP).

    The weights of a layer of a stack are gathered when the layer runs and freed after it. All other
    weights are gathered for the whole step. Gradients are summed over the ranks after every batch.
    Each rank keeps only its part of the sum, because the whole gradient may not fit into memory.
    """

    is_sharded = True

    def __init__(self, model: Model, world: World) -> None:
        mesh = init_device_mesh(world.device.type, (world.size,))
        for part in model.parts:
            for layer in part.layer_stack:
                fully_shard(layer, mesh=mesh)
        self.world = world
        self.module = LossModule(model)
        fully_shard(self.module, mesh=mesh)

    def begin(self, compute_loss: LossFunction) -> LossFunction:
        return partial(self._loss, compute_loss)

    def _loss(self, compute_loss: LossFunction, batch: Batch) -> Tensor:
        loss: Tensor = self.module(partial(compute_loss, batch))
        return loss

    def backward(self, loss: Tensor) -> Tensor:
        # FSDP divides gradients by the number of ranks. The loss is already divided by the number of
        # targets on all ranks.
        (loss * self.world.size).backward()
        return loss.detach()

    def shard(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return shard_like(self.module.model, tensors)

    def whole(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return whole_tensors(tensors, self.world)

    def abandon(self) -> None:
        # The other ranks wait for weights that this rank can no longer send.
        raise TrainingError(
            "out of memory on this rank. training.parallel = 'fsdp' cannot repeat the step with "
            "smaller batches. Reduce training.batch_tokens (and increase training.accumulate), or set "
            "training.activation_checkpointing = true. Then continue with --resume"
        )


def whole_tensors(tensors: Mapping[str, Tensor], world: World) -> dict[str, Tensor]:
    """Collect sharded tensors from all ranks. All ranks call this.

    Returns the whole tensors, in host memory, on rank 0; {} on the other ranks.
    """
    whole = {}
    for name, tensor in tensors.items():
        values = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
        if world.is_main:
            whole[name] = values.cpu()
    return whole


def copy_whole_weights(source: nn.Module, target: nn.Module) -> None:
    """Copy the weights of a sharded model to a model that is not sharded. All ranks call this."""
    with torch.no_grad():
        for weight, shard in zip(target.parameters(), source.parameters(), strict=True):
            assert isinstance(shard, DTensor)
            weight.copy_(shard.full_tensor())


def shard_like(model: nn.Module, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Divide tensors among the ranks in the same way as the weights that they belong to.

    tensors: whole tensors by name. A name contains the name of a weight, as in "decoder.weight" or
             "decoder.weight:exp_avg". A tensor stays whole if its shape differs from that of the weight
    """
    weights = dict(model.named_parameters())
    return {name: _shard(tensor, _weight(weights, name)) for name, tensor in tensors.items()}


def _weight(weights: Mapping[str, Tensor], name: str) -> Tensor | None:
    """Return the weight that a tensor belongs to; None if it belongs to no weight.

    name: name of the tensor. It contains the name of the weight, as in "decoder.weight:exp_avg"
    """
    return next((weights[part] for part in name.split(":") if part in weights), None)


def _shard(tensor: Tensor, weight: Tensor | None) -> Tensor:
    if not isinstance(weight, DTensor) or tensor.shape != weight.shape:
        return tensor
    # Every rank has all values, so nothing is sent.
    local = tensor.to(weight.device)
    return distribute_tensor(local, weight.device_mesh, weight.placements, src_data_rank=None)


def write_shards(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write sharded tensors. Every rank writes one file. All ranks call this."""
    writer = HuggingFaceStorageWriter(str(folder), save_distributed=True)
    save(dict(tensors), storage_writer=writer)


def read_shards(folder: Path, model: nn.Module) -> dict[str, Tensor]:
    """Read the tensors that `write_shards` wrote. All ranks call this.

    The number of ranks may have changed since. Each tensor is divided among the ranks in the same
    way as the weight of `model` that it belongs to.

    Raises a StorageError if the files cannot be read.
    """
    weights = dict(model.named_parameters())
    tensors: dict[str, Tensor] = {}
    try:
        reader = HuggingFaceStorageReader(str(folder))
        for name, entry in reader.read_metadata().state_dict_metadata.items():
            assert isinstance(entry, TensorStorageMetadata)
            empty = torch.zeros(entry.size, dtype=entry.properties.dtype)
            tensors[name] = _shard(empty, _weight(weights, name))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "torch.distributed is disabled")  # a single process
            load(tensors, storage_reader=reader)
    except CheckpointException as error:  # its own message contains a traceback
        ranks = "; ".join(f"rank {rank}: {cause}" for rank, (cause, _) in error.failures.items())
        raise StorageError(f"{folder}: cannot be read: {ranks}. {COPY_RUN}") from error
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise StorageError(f"{folder}: cannot be read: {error}. {COPY_RUN}") from error
    return tensors
