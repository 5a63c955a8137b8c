"""The process group of a training job, and collective operations on small values.

Each rank is one process. The ranks exchange small values (counts, flags, texts) as CPU tensors
through gloo, even if they train on GPUs, so that the exchange never waits for a GPU. Gradients on
GPUs are exchanged through NCCL. Every operation has a time limit.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as torch_distributed
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from seqloom.core.launch import is_rank, local_rank, restarts

T = TypeVar("T")


@dataclass(frozen=True)
class World:
    """The process group and this process's rank in it.

    rank:   number of this process, from 0
    size:   number of ranks
    device: device of this rank
    store:  key-value store that all ranks share. None if there is no process group, because
            torchrun did not start this process
    """

    rank: int
    size: int
    device: torch.device
    store: Store | None = None

    @property
    def is_main(self) -> bool:
        """True on rank 0, which writes the run folder and reports progress.

        Other ranks write only their parts of sharded checkpoints.
        """
        return self.rank == 0

    @property
    def has_group(self) -> bool:
        """True if there is a process group."""
        return self.store is not None

    def start_sum(self, number: int) -> Callable[[], int]:
        """Start to add up a number over all ranks. Returns a function that waits for the sum."""
        if not self.has_group:
            return lambda: number
        tensor = torch.tensor(number, dtype=torch.int64)
        work = torch_distributed.all_reduce(tensor, async_op=True)

        def wait() -> int:
            assert work is not None
            work.wait()
            return int(tensor)

        return wait

    def sum(self, number: int) -> int:
        """Return the sum of a number over all ranks."""
        return self.start_sum(number)()

    def min(self, number: int) -> int:
        """Return the smallest of the numbers that the ranks pass."""
        if not self.has_group:
            return number
        tensor = torch.tensor(number, dtype=torch.int64)
        torch_distributed.all_reduce(tensor, torch_distributed.ReduceOp.MIN)
        return int(tensor)

    def any(self, flag: bool) -> bool:
        """True on every rank if the flag is set on any rank."""
        return self.sum(flag) > 0

    def all_reduce_(self, tensor: Tensor) -> None:
        """Replace a tensor on the device by its sum over all ranks, in place."""
        if self.has_group:
            torch_distributed.all_reduce(tensor)

    def gather(self, value: T) -> list[T]:
        """Return, on every rank, the values that all ranks pass, in the order of the ranks."""
        if not self.has_group:
            return [value]
        values: list[Any] = [None] * self.size
        torch_distributed.all_gather_object(values, value)
        return values

    def broadcast(self, value: T) -> T:
        """Return, on every rank, the value that rank 0 passes."""
        if not self.has_group:
            return value
        values = [value]
        torch_distributed.broadcast_object_list(values)
        return values[0]

    def barrier(self) -> None:
        """Wait until all ranks reach this call."""
        self.sum(0)


@contextmanager
def join_world(device: torch.device, timeout: float) -> Iterator[World]:
    """Join the process group of the job. Without torchrun, there is only one rank and no group.

    timeout: time limit of every operation of the group, in seconds
    """
    if not is_rank():
        yield World(0, 1, device)
        return
    backend = "gloo"
    if device.type == "cuda":
        device = torch.device("cuda", local_rank())
        torch.cuda.set_device(device)
        backend = "cpu:gloo,cuda:nccl"
    limit = timedelta(seconds=timeout)
    shared_store, rank, size = next(rendezvous("env://", timeout=limit))
    # torchrun may keep the store when it restarts the job. The addresses in it are then invalid.
    store = PrefixStore(f"seqloom/{restarts()}", shared_store)
    torch_distributed.init_process_group(
        backend, store=store, rank=rank, world_size=size, timeout=limit
    )
    try:
        yield World(rank, size, device, store)
    finally:
        torch_distributed.destroy_process_group()
