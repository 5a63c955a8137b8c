"""OpenNMT-py's own Trainer, started by its own command, watched where it takes a batch."""

import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from onmt.bin.train import main as onmt_train
from onmt.trainer import Trainer

from bench.peers.opennmt.batches import counts
from bench.peers.opennmt.options import options
from bench.window import Window
from bench.workload import Workload


def main() -> None:
    window, workload = Window(), Workload.load(Path(sys.argv[1]))
    watch(window, workload)
    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["onmt_train", *options(workload, Path(folder))]
        onmt_train()


def watch(window: Window, workload: Workload) -> None:
    """A batch is trained on when the step before it is done."""
    own_step = Trainer._gradient_accumulation
    started = False

    def step(trainer: Trainer, batches: list[Any], *rest: Any) -> None:
        nonlocal started
        if not started:
            started = True
            announce(window, workload, trainer)
        window.step()
        (batch,) = batches
        window.batch(counts(batch, trainer.train_loss.padding_idx))
        own_step(trainer, batches, *rest)

    Trainer._gradient_accumulation = step


def announce(window: Window, workload: Workload, trainer: Trainer) -> None:
    window.ready(
        version=version("OpenNMT-py"),
        torch=torch.__version__,
        threads=torch.get_num_threads(),
        parameters=sum(one.numel() for one in trainer.model.parameters()),
        loop="onmt.trainer.Trainer",
        batching="token budget, like lengths together",
        dropout="attentional output"
        if workload.recurrent
        else "embedded input, sublayers' outputs, inside the feed-forward",
    )


if __name__ == "__main__":
    main()
