"""Joey NMT's TrainManager, with a hook in its training step."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from importlib_metadata import version
from joeynmt.batch import Batch
from joeynmt.training import TrainManager, train

from bench.comparison.time_window import TimeWindow, TokenCounts
from bench.comparison.workload import Workload
from bench.peers.joey.settings import settings


def main() -> None:
    window, workload = TimeWindow(), Workload.load(Path(sys.argv[1]))
    install_hook(window, workload)
    with tempfile.TemporaryDirectory() as folder:
        train(rank=0, world_size=1, cfg=settings(workload, Path(folder)), skip_test=True)


def install_hook(window: TimeWindow, workload: Workload) -> None:
    """Replace the trainer's step method: a new step starts when the previous one is finished."""
    original_step = TrainManager._train_step
    started = False

    def step(manager: TrainManager, batch: Batch) -> Any:
        nonlocal started
        if not started:
            started = True
            send_ready(window, workload, manager)
        window.finish_step()
        window.add_batch(count_tokens(batch))
        return original_step(manager, batch)

    TrainManager._train_step = step


def send_ready(window: TimeWindow, workload: Workload, manager: TrainManager) -> None:
    window.ready(
        version=version("joeynmt"),
        torch=torch.__version__,
        threads=torch.get_num_threads(),
        parameters=sum(parameter.numel() for parameter in manager.model.parameters()),
        loop="joeynmt.training.TrainManager",
        batching="token budget, in random order",
        dropout="embedded input, before the readout"
        if workload.is_recurrent
        else "embedded input, sublayers' outputs, attention weights, inside the feed-forward",
    )


def count_tokens(batch: Batch) -> TokenCounts:
    """Its targets exclude START."""
    return TokenCounts(
        int(batch.src_length.sum()), batch.src.numel(), int(batch.ntokens), batch.trg.numel()
    )


if __name__ == "__main__":
    main()
