"""Whoever copies looks along the diagonal; whoever turns around, along the other one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqloom.config.loading.loader import load_recipe
from seqloom.data.readers.splits import read_split
from seqloom.runs.options import PredictionOptions
from seqloom.runs.run import load
from seqloom.training.loop import train

LENGTH = 6
LETTERS = {"kind": "synthetic", "min_length": LENGTH, "max_length": LENGTH, "symbols": 12}
READER = {
    "kind": "transformer",
    "width": 24,
    "layers": 1,
    "feedforward": 48,
    "dropout": 0.0,
    "attention": {"heads": 1},
    "positions": {"kind": "learned", "max_length": 16},
}


@pytest.mark.parametrize("task", ["copy", "reverse"])
def test_attention_is_the_alignment_of_a_task_whose_alignment_is_known(
    task: str, tmp_path: Path
) -> None:
    """Under beam search; of 100 strings of six letters that were never seen."""
    letters = {**LETTERS, "task": task}
    tables: dict[str, Any] = {
        "data": {
            "train": {**letters, "examples": 3000},
            "dev": {**letters, "examples": 20},
            "test": {**letters, "examples": 100},
        },
        "text": {"tokenizer": {"kind": "characters"}},
        "model": {"encoder": READER, "decoder": READER},
        "training": {
            "steps": 150,
            "batch_tokens": 512,
            "evaluate_every": 150,
            "optimizer": {"learning_rate": 0.01},
            "schedule": {"kind": "cosine", "warmup": 20},
        },
    }
    config = load_recipe(tables).config
    train(config, tmp_path / "run")
    texts = [example.source for example in read_split(config.data, "test")]
    run = load(tmp_path / "run")
    known = np.eye(LENGTH) if task == "copy" else np.eye(LENGTH)[::-1]
    right = []
    for found in run.predict(texts, PredictionOptions(heads=True), beam=3):
        assert found[0].attention is not None
        shown = found[0].attention_map(found[0].attention, merged=False)
        assert shown.weights.sum(axis=1) == pytest.approx(1, abs=1e-5)
        letters_alone = shown.weights[:LENGTH, :LENGTH]
        best = letters_alone.argmax(axis=1) == known.argmax(axis=1)[: len(letters_alone)]
        right += best.tolist()
    assert np.mean(right) >= 0.95
