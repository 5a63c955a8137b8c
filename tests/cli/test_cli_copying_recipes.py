"""The bundled recipes with a copying decoder, with a small model and made-up examples."""

import random
from pathlib import Path

import pytest
from copying_corpora import CORPORA

import seqloom
from seqloom.config.loading.loader import load_recipe
from seqloom.runs.integrity import EVALUATION
from support.cli_runner import run_cli, set_options

pytestmark = pytest.mark.slow

SOURCES = {
    "django-code": "call tubalo with argument kurido.",
    "nl2bash": "Find files called tubalo",
    "conala": "sort list `tubalo`",
    "e2e": "name[tubalo], near[kurido]",
    "asset-simplify": "Subsequently tubalo returned to the house.",
    "scitldr": "We introduce tubalo. In experiments tubalo is better than kurido.",
}
SCORES = {
    "django-code": {"BLEU tokenised", "exact match tokenised"},
    "asset-simplify": {"SARI"},
    "scitldr": {"ROUGE-1", "ROUGE-2", "ROUGE-L"},
}
SMALL = (
    "text.tokenizer.size=120",
    "training.steps=16",
    "training.schedule.warmup=4",
    "training.batch_tokens=512",
    "training.evaluate_every=8",
    "training.evaluate_examples=8",
    "training.checkpoint_every=8",
    "model.encoder.width=16",
    "model.decoder.width=16",
)
SMALL_DATA = {
    "django-code": [
        "data.train.last_line=300",
        "data.dev.first_line=301",
        "data.dev.last_line=310",
        "data.test.first_line=311",
    ]
}
SIDES = ("model.encoder", "model.decoder")
SMALL_PARTS = {
    "transformer": [f"{side}.{key}" for side in SIDES for key in ("layers=1", "feedforward=16")],
    "recurrent": [f"{side}.embedding.width=16" for side in SIDES],
}


def small_settings(name: str, folder: Path) -> list[str]:
    kind = load_recipe(name).config.model.decoder.kind
    return [f"data.folder={folder}", *SMALL, *SMALL_PARTS[kind], *SMALL_DATA.get(name, [])]


@pytest.mark.parametrize("name", CORPORA)
def test_recipe_trains_evaluates_and_translates_after_a_move(name: str, tmp_path: Path) -> None:
    CORPORA[name](tmp_path, random.Random(1))
    settings = set_options(*small_settings(name, tmp_path))
    trained = run_cli("train", name, "--run", tmp_path / "first", *settings)
    assert trained.exit_code == 0, trained.stderr

    moved = (tmp_path / "first").rename(tmp_path / "moved")
    evaluated = run_cli("evaluate", moved)
    assert evaluated.exit_code == 0, evaluated.stderr
    run = seqloom.load(moved)
    names = {score.name for score in run.evaluate("test").scores}
    assert SCORES.get(name, {"BLEU"}) <= names
    assert (moved / EVALUATION / "test" / "outputs.txt").exists()

    result = run_cli("translate", moved, stdin=f"{SOURCES[name]}\n\n".encode())
    assert result.exit_code == 0, result.stderr
    texts = [prediction.text for prediction in run.translate([SOURCES[name], ""])]
    assert result.stdout.splitlines() == texts
    assert texts[1] == ""


@pytest.mark.parametrize("name", CORPORA)
def test_copying_requires_a_shared_vocabulary(name: str) -> None:
    load_recipe(name)
    with pytest.raises(seqloom.SeqloomError, match=r"text\.shared = true"):
        load_recipe(name, ["text.shared=false", "model.tie=output"])
