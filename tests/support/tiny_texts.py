"""A small config of a long-text language model."""

from pathlib import Path

from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.recipe import RunConfig

LINES = [f"{who} sees {what}." for who in ("ann", "bob", "eve") for what in ("a cat", "", "it")]
TEXT = "".join(f"{line}\n" for line in LINES) * 12


def long_text_config(folder: Path, *settings: str) -> RunConfig:
    """A character language model of TEXT, which is written to `folder`: an LSTM of width 24.

    settings: changes to the recipe, as for --set
    """

    def split(**settings: object) -> dict[str, object]:
        return {"kind": "long-text", "path": "text", "length": 24, **settings}

    (folder / "text").write_text(TEXT, encoding="utf-8")
    tables = {
        "task": {"kind": "language-model"},
        "data": {
            "folder": str(folder),
            "train": split(end=0.9),
            "dev": split(begin=0.9),
            "test": split(begin=0.9),
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
    return load_recipe(tables, settings).config
