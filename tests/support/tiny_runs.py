"""Configs that train in a second, and functions that read the resulting run folders."""

import hashlib
import json
from pathlib import Path
from typing import Any

from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.recipe import RunConfig
from seqloom.runs.integrity import checkpoint_store
from seqloom.training.event_log import Event

LETTERS = {"kind": "synthetic", "task": "reverse", "min_length": 2, "max_length": 4, "symbols": 4}


def tiny_config(*settings: str) -> RunConfig:
    """Reversal of short strings with a recurrent attention model of width 8.

    settings: changes to the recipe, as for --set
    """
    tables: dict[str, Any] = {
        "data": {
            "train": {**LETTERS, "examples": 60},
            "dev": {**LETTERS, "examples": 8},
            "test": {**LETTERS, "examples": 8},
        },
        "text": {"tokenizer": {"kind": "characters"}},
        "model": {
            "encoder": {"kind": "recurrent", "width": 8, "dropout": 0.1},
            "decoder": {"kind": "recurrent", "width": 8, "dropout": 0.1},
        },
        "training": {
            "steps": 12,
            "batch_tokens": 64,
            "evaluate_every": 4,
            "evaluate_examples": 4,
            "checkpoint_every": 3,
            "optimizer": {"learning_rate": 0.01},
            "schedule": {"kind": "constant"},
        },
    }
    return load_recipe(tables, settings).config


TRANSFORMER = tuple(
    f"model.{side}={{kind='transformer', width=8, layers=1, feedforward=16, dropout=0.0, "
    "attention={heads=2}, positions={kind='learned', max_length=24}}"
    for side in ("encoder", "decoder")
)
"""A Transformer of width 8 without dropout."""
NO_DROPOUT = ("model.encoder.dropout=0.0", "model.decoder.dropout=0.0")
LANGUAGE_MODEL = (
    "task.kind=language-model",
    "model.encoder.kind=none",
    "model.decoder={kind='recurrent', width=8, initial_state='zeros', attention={kind='none'}}",
)
"""A language model of the targets."""


def latest_checkpoint(folder: Path) -> Path:
    """The newest checkpoint of a run, which must be intact."""
    path = checkpoint_store(folder).current()
    assert path is not None
    return path


def checkpoint_digests(folder: Path) -> dict[str, str]:
    """SHA-256 of the weights, the optimiser state and the averages in the latest checkpoint."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(latest_checkpoint(folder).glob("*.safetensors"))
    }


def read_trainer_state(folder: Path) -> dict[str, Any]:
    """The content of trainer.json in the latest checkpoint."""
    state: dict[str, Any] = json.loads((latest_checkpoint(folder) / "trainer.json").read_bytes())
    return state


def read_events(folder: Path) -> list[dict[str, Any]]:
    """The events in metrics.jsonl."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line, parse_constant=_reject_constant) for line in lines]


def _reject_constant(name: str) -> float:
    raise AssertionError(f"{name} is not JSON")


def temporary_files(folder: Path) -> list[Path]:
    """Temporary files and locks inside a run folder and next to it. There should be none."""
    inside = list(folder.rglob(".*"))
    return [*inside, *folder.parent.glob(".tmp-*"), *folder.parent.glob(".*.lock")]


class EventCollector:
    """A `report` callback for `train` that stores every event."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]
