"""Small parents and recipes for the tests of fine-tuning."""

from pathlib import Path
from typing import Any

import seqloom
from support.tiny_runs import LETTERS, tiny_config

COPY = {**LETTERS, "task": "copy"}
"""Data of another kind than the parent's: it copies strings instead of reversing them."""


def copy_recipe(**data: Any) -> dict[str, Any]:
    """A recipe that contains only [data]."""
    return {
        "data": {
            "train": {**COPY, "examples": 40},
            "dev": {**COPY, "examples": 8},
            "test": {**COPY, "examples": 8},
            **data,
        }
    }


FEW_STEPS = ("training.steps=6", "training.evaluate_every=3", "training.checkpoint_every=2")


def train_parent(folder: Path, *settings: str) -> Path:
    """A model that reverses strings."""
    seqloom.train(tiny_config("training.steps=6", "training.evaluate_every=3", *settings), folder)
    return folder
