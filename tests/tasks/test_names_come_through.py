"""What copying is for: words that were never said in training."""

import random
from pathlib import Path

import pytest

from seqloom.runs.run import load
from seqloom.training.loop import train
from tiny_runs import recipe

SAID = [f"k{number}" for number in range(200)]
SKIPPED = [f"s{number}" for number in range(100)]
"""Read in training, and never to be said there."""
SIDES = {
    "recurrent": "kind='recurrent', width=24",
    "transformer": "kind='transformer', width=32, layers=1, feedforward=32, dropout=0.0",
}


def write_pairs(path: Path, said: list[str], skipped: list[str], count: int) -> None:
    draw = random.Random(3)
    rows = []
    for _ in range(count):
        one, two = draw.choices(said, k=2)
        rows.append(f"say {one} not {two}\t{one} !\n")
        if skipped:
            one, two = draw.choices(skipped, k=2)
            rows.append(f"skip {one} not {two}\tno !\n")
    path.write_text("".join(rows), encoding="utf-8")


@pytest.mark.parametrize("kind", SIDES)
def test_a_word_that_was_never_said_can_be_copied_and_not_spoken(kind: str, tmp_path: Path) -> None:
    write_pairs(tmp_path / "train.tsv", SAID, SKIPPED, 800)
    write_pairs(tmp_path / "test.tsv", SKIPPED, [], 50)
    matches = {}
    for copying in (True, False):
        config = recipe(
            f"data.folder={tmp_path}",
            "data.train={kind='tsv', path='train.tsv'}",
            *(f"data.{split}={{kind='tsv', path='test.tsv'}}" for split in ("dev", "test")),
            "text={tokenizer={kind='words'}, shared=true}",
            f"model.encoder={{{SIDES[kind]}}}",
            f"model.decoder={{{SIDES[kind]}, copying={str(copying).lower()}}}",
            "training.steps=200",
            "training.batch_tokens=512",
            "training.evaluate_every=200",
            "training.checkpoint_every=200",
        )
        run = tmp_path / f"{kind}-{copying}"
        train(config, run)
        scores = {score.name: score.value for score in load(run).evaluate("test").scores}
        matches[copying] = scores["exact match"]
    assert matches[True] > 50
    assert matches[False] < 5
