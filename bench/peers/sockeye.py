"""Sockeye's trainer, started by its command, with a hook in its training step.

Sockeye builds the vocabulary from the same pieces.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import sockeye
from sockeye.data_io import Batch
from sockeye.train import main as sockeye_train
from sockeye.training import EarlyStoppingTrainer

from bench.comparison.time_window import TimeWindow, TokenCounts
from bench.comparison.workload import Workload


def count_tokens(trainer: Any, batch: Batch) -> TokenCounts:
    """The token ids are the first source factor. PAD is 0."""
    source, labels = batch.source[:, :, 0], batch.labels["target_label"]
    return TokenCounts(
        int((source != 0).sum()), source.numel(), int((labels != 0).sum()), labels.numel()
    )


def main() -> None:
    window, workload = TimeWindow(), Workload.load(Path(sys.argv[1]))
    window.hook(
        EarlyStoppingTrainer,
        "_step",
        count_tokens,
        lambda trainer: window.describe(
            trainer.sockeye_model,
            sockeye.__version__,
            "sockeye.training.EarlyStoppingTrainer",
            "token budget, in buckets of lengths",
            "embedded input, sublayers' outputs",
        ),
    )
    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["sockeye-train", *workload.fill("sockeye.txt", folder).split()]
        sockeye_train()


if __name__ == "__main__":
    main()
