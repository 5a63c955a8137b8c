"""OpenNMT-py's Trainer, started by its command, with a hook in its gradient accumulation."""

import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from onmt.bin.train import main as onmt_train
from onmt.trainer import Trainer

from bench.comparison.time_window import TimeWindow
from bench.comparison.workload import Workload
from bench.peers.opennmt.batches import count_tokens
from bench.peers.opennmt.options import options


def main() -> None:
    window, workload = TimeWindow(), Workload.load(Path(sys.argv[1]))
    install_hook(window, workload)
    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["onmt_train", *options(workload, Path(folder))]
        onmt_train()


def install_hook(window: TimeWindow, workload: Workload) -> None:
    """Replace the trainer's step method: a new step starts when the previous one is finished."""
    original_step = Trainer._gradient_accumulation
    started = False

    def step(trainer: Trainer, batches: list[Any], *rest: Any) -> None:
        nonlocal started
        if not started:
            started = True
            send_ready(window, workload, trainer)
        window.finish_step()
        (batch,) = batches
        window.add_batch(count_tokens(batch, trainer.train_loss.padding_idx))
        original_step(trainer, batches, *rest)

    Trainer._gradient_accumulation = step


def send_ready(window: TimeWindow, workload: Workload, trainer: Trainer) -> None:
    window.ready(
        version=version("OpenNMT-py"),
        torch=torch.__version__,
        threads=torch.get_num_threads(),
        parameters=sum(parameter.numel() for parameter in trainer.model.parameters()),
        loop="onmt.trainer.Trainer",
        batching="token budget, similar lengths together",
        dropout="attentional output"
        if workload.is_recurrent
        else "embedded input, sublayers' outputs, inside the feed-forward",
    )


if __name__ == "__main__":
    main()
