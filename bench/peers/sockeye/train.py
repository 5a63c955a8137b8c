"""Sockeye's own trainer, started by its own command, watched where it takes a batch."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import sockeye
import torch
from sockeye.data_io import Batch
from sockeye.train import main as sockeye_train
from sockeye.training import EarlyStoppingTrainer

from bench.window import Counts, Window
from bench.workload import Workload

NEVER = 10**9


def main() -> None:
    window, workload = Window(), Workload.load(Path(sys.argv[1]))
    watch(window)
    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["sockeye-train", *options(workload, Path(folder))]
        sockeye_train()


def options(workload: Workload, folder: Path) -> list[str]:
    """Its command line; it counts the vocabulary itself, from the same pieces."""
    pieces = workload.folder / "pieces"
    given = {
        "source": pieces / "train.source",
        "target": pieces / "train.target",
        "validation-source": pieces / "dev.source",
        "validation-target": pieces / "dev.target",
        "output": folder / "model",
        "num-layers": workload.layers,
        "transformer-model-size": workload.width,
        "transformer-attention-heads": workload.heads,
        "transformer-feed-forward-num-hidden": workload.feedforward,
        "transformer-dropout-prepost": workload.dropout,
        "transformer-dropout-attention": 0.0,
        "transformer-dropout-act": 0.0,
        "weight-tying-type": "src_trg_softmax",
        "label-smoothing": 0.0,
        "batch-type": "max-word",
        "batch-size": workload.batch_tokens,
        "optimizer-betas": "0.9:0.98",
        "initial-learning-rate": workload.learning_rate,
        "learning-rate-scheduler-type": "none",
        "gradient-clipping-type": "norm",
        "gradient-clipping-threshold": workload.clip,
        "checkpoint-interval": NEVER,
        "max-updates": NEVER,
        "decode-and-evaluate": 0,
        "seed": workload.seed,
    }
    chosen = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    return [*chosen, "--shared-vocab", "--use-cpu"]


def watch(window: Window) -> None:
    """A batch is trained on when the step before it is done."""
    own_step = EarlyStoppingTrainer._step
    started = False

    def step(trainer: EarlyStoppingTrainer, batch: Batch) -> Any:
        nonlocal started
        if not started:
            started = True
            announce(window, trainer)
        window.step()
        window.batch(counts(batch))
        return own_step(trainer, batch)

    EarlyStoppingTrainer._step = step


def announce(window: Window, trainer: EarlyStoppingTrainer) -> None:
    window.ready(
        version=sockeye.__version__,
        torch=torch.__version__,
        threads=torch.get_num_threads(),
        parameters=sum(one.numel() for one in trainer.sockeye_model.parameters()),
        loop="sockeye.training.EarlyStoppingTrainer",
        batching="token budget, in buckets of lengths",
        dropout="embedded input, sublayers' outputs",
    )


def counts(batch: Batch) -> Counts:
    """A length stands first in a row of lengths; PAD is 0."""
    source, labels = batch.source[:, :, 0], batch.labels["target_label"]
    return Counts(
        int((source != 0).sum()), source.numel(), int((labels != 0).sum()), labels.numel()
    )


if __name__ == "__main__":
    main()
