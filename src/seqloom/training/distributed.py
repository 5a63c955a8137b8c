"""Data-parallel training: the process group and its collective operations.

Each rank processes its share of the batches and divides its losses by the number of targets on all
ranks. Gradients are then summed over all ranks. The gradient therefore does not depend on the
number of ranks.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as torch_distributed
from torch import Tensor, nn


@dataclass(frozen=True)
class World:
    """The process group and this process's rank in it."""

    rank: int
    size: int
    device: torch.device

    @property
    def is_main(self) -> bool:
        """True on rank 0, the only rank that writes files and reports progress."""
        return self.rank == 0

    def sum(self, number: float) -> float:
        """Return the sum of a number over all ranks."""
        if self.size == 1:
            return number
        tensor = torch.tensor(number, dtype=torch.float64, device=self.device)
        torch_distributed.all_reduce(tensor)
        return float(tensor)

    def any(self, flag: bool) -> bool:
        """True on every rank if the flag is set on any rank."""
        return self.sum(float(flag)) > 0

    def all_reduce_(self, tensor: Tensor) -> None:
        """Replace a tensor by its sum over all ranks, in place."""
        if self.size > 1:
            torch_distributed.all_reduce(tensor)

    def broadcast(self, number: float) -> float:
        """Return, on every rank, the value of `number` that rank 0 passes."""
        return self.sum(number if self.is_main else 0.0)

    def all_reduce_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace every gradient by its sum over all ranks."""
        if self.size == 1:
            return
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            self.all_reduce_(parameter.grad)

    def barrier(self) -> None:
        """Wait until all ranks reach this call."""
        if self.size > 1:
            torch_distributed.barrier()


@contextmanager
def join_world(device: torch.device) -> Iterator[World]:
    """Join the process group started by torchrun. Without torchrun, there is only one rank."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield World(0, 1, device)
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    torch_distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield World(torch_distributed.get_rank(), size, device)
    finally:
        torch_distributed.destroy_process_group()
