"""OpenNMT-py's Trainer, started by its command, with a hook in its gradient accumulation."""

import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from onmt.bin.train import main as onmt_train
from onmt.trainer import Trainer

from bench.comparison.time_window import TimeWindow, count_onmt_tokens
from bench.comparison.workload import Workload


def options(workload: Workload, temporary: str) -> list[str]:
    """The command-line options. OpenNMT-py reads the paths of the corpus from a configuration file."""
    config = workload.fill("opennmt.config.json", temporary)  # JSON is YAML
    (Path(temporary) / "config.yaml").write_text(config, encoding="utf-8")
    workload.write_vocabulary(Path(temporary))
    names = ("opennmt.txt", f"opennmt.{workload.family}.txt")
    return [word for name in names for word in workload.fill(name, temporary).split()]


def main() -> None:
    window, workload = TimeWindow(), Workload.load(Path(sys.argv[1]))

    def describe(trainer: Any) -> None:
        window.describe(
            trainer.model,
            version("OpenNMT-py"),
            "onmt.trainer.Trainer",
            "token budget, similar lengths together",
            "attentional output"
            if workload.is_recurrent
            else "embedded input, sublayers' outputs, inside the feed-forward",
        )

    window.hook(Trainer, "_gradient_accumulation", count_onmt_tokens, describe)
    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["onmt_train", *options(workload, folder)]
        onmt_train()


if __name__ == "__main__":
    main()
