"""Eole's Trainer, with a hook in its training step."""

import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from eole.bin.run.train import train
from eole.config.run import TrainConfig
from eole.trainer import Trainer

from bench.comparison.time_window import TimeWindow, count_onmt_tokens
from bench.comparison.workload import Workload


def main() -> None:
    window, workload = TimeWindow(), Workload.load(Path(sys.argv[1]))
    window.hook(
        Trainer,
        "_train_step",
        count_onmt_tokens,
        lambda trainer: window.describe(
            trainer.model,
            version("eole"),
            "eole.trainer.Trainer",
            "token budget, similar lengths together",
            "embedded input, sublayers' outputs, inside the feed-forward",
        ),
    )
    with tempfile.TemporaryDirectory() as folder:
        workload.write_vocabulary(Path(folder))
        train(TrainConfig(**json.loads(workload.fill("eole.json", folder))))


if __name__ == "__main__":
    main()
