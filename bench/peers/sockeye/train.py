"""Sockeye's trainer, started by its command, with a hook in its training step."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import sockeye
import torch
from sockeye.data_io import Batch
from sockeye.train import main as sockeye_train
from sockeye.training import EarlyStoppingTrainer

from bench.comparison.time_window import TimeWindow, TokenCounts
from bench.comparison.workload import Workload

NEVER = 10**9


def main() -> None:
    window, workload = TimeWindow(), Workload.load(Path(sys.argv[1]))
    install_hook(window)
    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["sockeye-train", *options(workload, Path(folder))]
        sockeye_train()


def options(workload: Workload, folder: Path) -> list[str]:
    """The command-line options. Sockeye builds the vocabulary from the same pieces."""
    pieces = workload.folder / "pieces"
    values = {
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
    arguments = [word for name, value in values.items() for word in (f"--{name}", str(value))]
    return [*arguments, "--shared-vocab", "--use-cpu"]


def install_hook(window: TimeWindow) -> None:
    """Replace the trainer's step method: a new step starts when the previous one is finished."""
    original_step = EarlyStoppingTrainer._step
    started = False

    def step(trainer: EarlyStoppingTrainer, batch: Batch) -> Any:
        nonlocal started
        if not started:
            started = True
            send_ready(window, trainer)
        window.finish_step()
        window.add_batch(count_tokens(batch))
        return original_step(trainer, batch)

    EarlyStoppingTrainer._step = step


def send_ready(window: TimeWindow, trainer: EarlyStoppingTrainer) -> None:
    window.ready(
        version=sockeye.__version__,
        torch=torch.__version__,
        threads=torch.get_num_threads(),
        parameters=sum(parameter.numel() for parameter in trainer.sockeye_model.parameters()),
        loop="sockeye.training.EarlyStoppingTrainer",
        batching="token budget, in buckets of lengths",
        dropout="embedded input, sublayers' outputs",
    )


def count_tokens(batch: Batch) -> TokenCounts:
    """The token ids are the first source factor. PAD is 0."""
    source, labels = batch.source[:, :, 0], batch.labels["target_label"]
    return TokenCounts(
        int((source != 0).sum()), source.numel(), int((labels != 0).sum()), labels.numel()
    )


if __name__ == "__main__":
    main()
