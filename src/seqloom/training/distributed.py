"""Several processes that train one model. The only file that knows of ranks.

Each rank takes its share of the batches; losses are summed, gradients added up and divided once by
the number of targets of all ranks, so that two ranks train as one.
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
    """This process' place among those that train together."""

    rank: int
    size: int
    device: torch.device

    @property
    def leads(self) -> bool:
        """Only the first rank writes files and talks."""
        return self.rank == 0

    def total(self, number: float) -> float:
        """The sum over all ranks."""
        if self.size == 1:
            return number
        carrier = torch.tensor(number, dtype=torch.float64, device=self.device)
        torch_distributed.all_reduce(carrier)
        return float(carrier)

    def any(self, flag: bool) -> bool:
        """Does any rank say so? Then all must act."""
        return self.total(float(flag)) > 0

    def add_up(self, tensor: Tensor) -> None:
        """Replace a tensor by its sum over all ranks, where it is."""
        if self.size > 1:
            torch_distributed.all_reduce(tensor)

    def agreed(self, number: float) -> float:
        """The first rank's number: what all ranks decide by must be the same to the last bit."""
        return self.total(number if self.leads else 0.0)

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace every gradient by its sum over all ranks."""
        if self.size == 1:
            return
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            self.add_up(parameter.grad)

    def wait(self) -> None:
        if self.size > 1:
            torch_distributed.barrier()


@contextmanager
def join_world(device: torch.device) -> Iterator[World]:
    """Join the processes that torchrun started; alone, a world of one."""
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
