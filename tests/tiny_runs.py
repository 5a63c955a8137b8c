"""Recipes that train in a second, and ways to look at what came of them."""

import hashlib
import json
from pathlib import Path
from typing import Any

from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.recipe import RunConfig
from seqloom.runs.folder.integrity import checkpoint_store
from seqloom.training.event_log import Event

LETTERS = {"kind": "synthetic", "task": "reverse", "min_length": 2, "max_length": 4, "symbols": 4}


def recipe(*changes: str) -> RunConfig:
    """Turning short strings around, with an attention model of width 8; changed by --set."""
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
    return load_recipe(tables, changes).config


TRANSFORMER = tuple(
    f"model.{side}={{kind='transformer', width=8, layers=1, feedforward=16, dropout=0.0, "
    "attention={heads=2}, positions={kind='learned', max_length=24}}"
    for side in ("encoder", "decoder")
)
STILL = ("model.encoder.dropout=0.0", "model.decoder.dropout=0.0")
"""Without dropout."""
SPEAKER = (
    "task.kind=language-model",
    "model.encoder.kind=none",
    "model.decoder={kind='recurrent', width=8, initial_state='zeros', attention={kind='none'}}",
)
"""A language model over the targets."""


def latest(folder: Path) -> Path:
    """The newest checkpoint, whole."""
    place = checkpoint_store(folder).current()
    assert place is not None
    return place


def outcome(folder: Path) -> dict[str, str]:
    """SHA-256 of all that training has learned: weights, optimiser and averages."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(latest(folder).glob("*.safetensors"))
    }


def saved_record(folder: Path) -> dict[str, Any]:
    """What the latest checkpoint says of itself."""
    record: dict[str, Any] = json.loads((latest(folder) / "trainer.json").read_bytes())
    return record


def journal(folder: Path) -> list[dict[str, Any]]:
    """Every line of metrics.jsonl."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line, parse_constant=_no_number) for line in lines]


def _no_number(name: str) -> float:
    raise AssertionError(f"{name} is not JSON")


def stray(folder: Path) -> list[Path]:
    """What should not be there: temporary names in the folder and beside it."""
    inside = list(folder.rglob(".*"))
    return [*inside, *folder.parent.glob(".tmp-*"), *folder.parent.glob(".*.lock")]


class Watcher:
    """Remembers what it is told; raises what it was given when that event comes."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]
