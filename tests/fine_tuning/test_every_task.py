"""Runs of every task can be fine-tuned, and start with the score of their parent."""

from pathlib import Path
from typing import Any

import pytest

import seqloom
from seqloom.config.loading.loader import load_run_recipe
from seqloom.config.loading.toml import format_recipe, parse_toml
from support.small_runs import TRAINERS
from support.tiny_runs import read_events
from support.tiny_texts import long_text_config

pytestmark = pytest.mark.slow


def train_long_text(folder: Path) -> Path:
    """A language model of one long text."""
    short = ("training.steps=4", "training.evaluate_every=4")
    seqloom.train(long_text_config(folder.parent, *short), folder)
    return folder


PARENTS = {
    **{name: TRAINERS[name] for name in ("speaker", "polyglot", "captioner", "forecaster")},
    "labeller": TRAINERS["labeller"],
    "long text": train_long_text,
}


def scores(event: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in event.items() if isinstance(value, float)} | {"time": 0}


@pytest.mark.parametrize("name", PARENTS)
def test_fine_tuning_on_the_same_data_starts_with_the_score_of_the_parent(
    name: str, tmp_path: Path
) -> None:
    parent = PARENTS[name](tmp_path / "parent")
    config = load_run_recipe(parent / "config.toml").config
    data = parse_toml(format_recipe(config).encode())["data"]
    settings = ["training.steps=2", "training.evaluate_every=2"]
    summary = seqloom.fine_tune({"data": data}, parent, tmp_path / "run", settings=settings)
    assert summary.step == 2
    best = [event for event in read_events(parent) if event.get("best") is True][-1]
    first = next(event for event in read_events(tmp_path / "run") if event["event"] == "evaluate")
    assert scores(first) == scores(best)
    assert first["general"]["loss"] == best["loss"]
