"""A small recipe of running text."""

from pathlib import Path

from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.recipe import RunConfig

LINES = [f"{who} sees {what}." for who in ("ann", "bob", "eve") for what in ("a cat", "", "it")]
TEXT = "".join(f"{line}\n" for line in LINES) * 12


def running_recipe(folder: Path, *changes: str) -> RunConfig:
    """Characters of a text in this folder, with an LSTM of width 24; changed by --set."""

    def part(**settings: object) -> dict[str, object]:
        return {"kind": "long-text", "path": "text", "length": 24, **settings}

    (folder / "text").write_text(TEXT, encoding="utf-8")
    tables = {
        "task": {"kind": "language-model"},
        "data": {
            "folder": str(folder),
            "train": part(end=0.9),
            "dev": part(begin=0.9),
            "test": part(begin=0.9),
        },
        "text": {"tokenizer": {"kind": "characters"}},
        "model": {"decoder": {"kind": "recurrent", "cell": "lstm", "width": 24}},
        "training": {
            "steps": 60,
            "batch_tokens": 240,
            "evaluate_every": 30,
            "optimizer": {"learning_rate": 0.02},
            "schedule": {"kind": "constant"},
        },
    }
    return load_recipe(tables, changes).config
