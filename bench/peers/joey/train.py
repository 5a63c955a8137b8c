"""Joey NMT's own TrainManager, watched where it takes a batch."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from importlib_metadata import version
from joeynmt.batch import Batch
from joeynmt.training import TrainManager, train

from bench.peers.joey.settings import settings
from bench.window import Counts, Window
from bench.workload import Workload


def main() -> None:
    window, workload = Window(), Workload.load(Path(sys.argv[1]))
    watch(window, workload)
    with tempfile.TemporaryDirectory() as folder:
        train(rank=0, world_size=1, cfg=settings(workload, Path(folder)), skip_test=True)


def watch(window: Window, workload: Workload) -> None:
    """A batch is trained on when the step before it is done."""
    own_step = TrainManager._train_step
    started = False

    def step(manager: TrainManager, batch: Batch) -> Any:
        nonlocal started
        if not started:
            started = True
            announce(window, workload, manager)
        window.step()
        window.batch(counts(batch))
        return own_step(manager, batch)

    TrainManager._train_step = step


def announce(window: Window, workload: Workload, manager: TrainManager) -> None:
    window.ready(
        version=version("joeynmt"),
        torch=torch.__version__,
        threads=torch.get_num_threads(),
        parameters=sum(one.numel() for one in manager.model.parameters()),
        loop="joeynmt.training.TrainManager",
        batching="token budget, in random order",
        dropout="embedded input, before the readout"
        if workload.recurrent
        else "embedded input, sublayers' outputs, attention weights, inside the feed-forward",
    )


def counts(batch: Batch) -> Counts:
    """Its targets begin after START."""
    return Counts(
        int(batch.src_length.sum()), batch.src.numel(), int(batch.ntokens), batch.trg.numel()
    )


if __name__ == "__main__":
    main()
