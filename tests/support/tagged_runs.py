"""A run whose task is chosen by a tag in the text."""

from pathlib import Path

from seqloom.training.loop import train
from support.tiny_runs import tiny_config

_CASE = "{kind='synthetic', task='case', examples=40, min_length=2, max_length=6}"
CASE = (
    "text.tags=['<U>', '<L>']",
    *(f"data.{split}={_CASE}" for split in ("train", "dev", "test")),
)
"""Changes the case of letters: <U> ab -> AB, <L> AB -> ab."""
ADVICE = "none of the tags of this run: <U>, <L>"


def train_tagged_run(folder: Path) -> Path:
    train(tiny_config(*CASE, "training.steps=4", "decoding.max_length=8"), folder)
    return folder
