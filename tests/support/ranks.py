"""Functions on several ranks, each in a forked process."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from seqloom.config.schema.recipe import RunConfig
from seqloom.training.loop import train
from support.forking import ChildProcess
from support.free_ports import free_port


def run_on_ranks(ranks: int, function: Callable[[int], object]) -> list[int]:
    """Call a function with the number of each rank, in an environment as torchrun sets it.

    Returns the exit codes.
    """
    port = free_port()

    def run(rank: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": port,
                "WORLD_SIZE": ranks,
                "RANK": rank,
                "LOCAL_RANK": rank,
            }.items():
                patch.setenv(name, str(value))
            function(rank)

    children = [ChildProcess(partial(run, rank)) for rank in range(ranks)]
    return [child.wait() for child in children]


def train_on_ranks(ranks: int, config: RunConfig, folder: Path, resume: bool = False) -> None:
    """Train with this number of processes. One rank is a process without a process group."""
    if ranks == 1:
        train(config, folder, resume=resume)
        return
    assert run_on_ranks(ranks, lambda _: train(config, folder, resume=resume)) == [0] * ranks
