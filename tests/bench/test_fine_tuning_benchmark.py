"""The systems of the fine-tuning benchmark and its page."""

import argparse
import json
from pathlib import Path

import pytest

from bench.fine_tuning import PARENT, SYSTEMS, measure, page
from support.toy_languages import write_languages

TINY = [
    "training.batch_tokens=512",
    "training.stopping.score=loss",
    "training.evaluate_examples=2",
    "decoding={kind='greedy', max_length=5}",
    "task.scores=['bleu']",
]
SMALL_MODEL = [
    *(f"model.{side}={{kind='transformer', width=8, layers=1, feedforward=8, "
      "attention={heads=2}}" for side in ("encoder", "decoder")),
    *("training.steps=2", "training.schedule={kind='constant'}", "training.evaluate_every=2"),
    "text.tokenizer={kind='characters'}",
]  # fmt: skip
STEPS = ["training.steps=2", "training.evaluate_every=2"]


@pytest.mark.slow
@pytest.mark.long
def test_each_measured_system_has_a_row_on_the_page(tmp_path: Path) -> None:
    folder = write_languages(tmp_path / "data", ["train", "val", "test_2016_flickr"], lines=20)
    arguments = argparse.Namespace(
        out=tmp_path,
        multi30k=folder,
        runs=tmp_path / "runs",
        settings=TINY,
        parent_settings=SMALL_MODEL,
        tune_settings=STEPS,
    )
    for system in (PARENT, "fine-tuned, replay of 20 %"):
        measure(system, 1, arguments)
    results = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("*.json"))]
    assert {*results[0]["bleu"]} == {"multi30k", "tatoeba"}
    text = page(results)
    assert text.count("\n| fine-tuned") == 1
    assert f"\n| {PARENT} |" in text
    assert "tok:13a" in text


def test_all_systems_differ() -> None:
    systems = {
        (tuple(each.corpora), tuple(each.settings), each.is_tuned, each.pairs)
        for each in SYSTEMS.values()
    }
    assert len(systems) == len(SYSTEMS)
