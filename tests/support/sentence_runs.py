"""Runs that are trained on sentences, so that predictions split texts."""

from pathlib import Path
from random import Random
from typing import Any

import seqloom
from seqloom.config.loading.loader import load_recipe
from support.toy_languages import WORDS

SENTENCES = ("Dog runs here.", "Big cat sits.", "Red man runs.")


def write_sentences(path: Path, lines: int = 200) -> Path:
    """Write a TSV file of English and German sentences that end with a full stop."""
    random = Random(3)
    rows = []
    for _ in range(lines):
        words = random.choices(range(8), k=random.randint(2, 4))
        english, german = (" ".join(WORDS[code][i] for i in words) for code in ("en", "de"))
        rows.append(f"{english.capitalize()}.\t{german.capitalize()}.\n")
    path.write_text("".join(rows), encoding="utf-8")
    return path


def sentence_tables(folder: Path) -> dict[str, Any]:
    data = {"kind": "tsv", "path": str(write_sentences(folder.parent / "sentences.tsv"))}
    side = {"kind": "recurrent", "width": 16, "dropout": 0.0}
    return {
        "data": dict.fromkeys(("train", "dev", "test"), data),
        "text": {"tokenizer": {"kind": "subwords", "size": 90}},
        "model": {"encoder": side, "decoder": side},
        "training": {
            "steps": 60,
            "batch_tokens": 512,
            "evaluate_every": 60,
            "evaluate_examples": 4,
            "checkpoint_every": 60,
            "optimizer": {"learning_rate": 0.02},
            "schedule": {"kind": "constant"},
        },
        "decoding": {"kind": "beam", "width": 3, "max_length": 40},
    }


def train_sentence_run(folder: Path, *settings: str) -> Path:
    """Translates sentences of a few words. It is trained on single sentences."""
    seqloom.train(load_recipe(sentence_tables(folder), settings).config, folder)
    return folder
