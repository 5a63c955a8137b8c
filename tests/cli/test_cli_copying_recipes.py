"""Each recipe that copies runs from beginning to end, in miniature: fewer pieces and steps, a
smaller model, made-up examples."""

import random
from pathlib import Path

import pytest
from calling import call
from copying_corpora import CORPORA

import seqloom
from seqloom.config.loading.loader import load_recipe
from seqloom.runs.folder.integrity import EVALUATION

QUESTIONS = {
    "django-code": "call tubalo with argument kurido.",
    "nl2bash": "Find files called tubalo",
    "conala": "sort list `tubalo`",
    "e2e": "name[tubalo], near[kurido]",
    "asset-simplify": "Subsequently tubalo returned to the house.",
    "scitldr": "We introduce tubalo. In experiments tubalo is better than kurido.",
}
FURTHER = {
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


def miniature(name: str, folder: Path) -> list[str]:
    kind = load_recipe(name).config.model.decoder.kind
    return [f"data.folder={folder}", *SMALL, *SMALL_PARTS[kind], *SMALL_DATA.get(name, [])]


@pytest.mark.parametrize("name", CORPORA)
def test_a_recipe_trains_scores_answers_and_moves(name: str, tmp_path: Path) -> None:
    CORPORA[name](tmp_path, random.Random(1))
    changes = miniature(name, tmp_path)
    settings = [part for change in changes for part in ("--set", change)]
    trained = call("train", name, "--run", tmp_path / "first", *settings)
    assert trained.code == 0, trained.err

    moved = (tmp_path / "first").rename(tmp_path / "moved")
    evaluated = call("evaluate", moved)
    assert evaluated.code == 0, evaluated.err
    run = seqloom.load(moved)
    names = {score.name for score in run.evaluate("test").scores}
    assert FURTHER.get(name, {"BLEU"}) <= names
    assert (moved / EVALUATION / "test" / "outputs.txt").exists()

    answer = call("translate", moved, given=f"{QUESTIONS[name]}\n\n".encode())
    assert answer.code == 0, answer.err
    texts = [one.text for one in run.translate([QUESTIONS[name], ""])]
    assert answer.out.splitlines() == texts
    assert texts[1] == ""


@pytest.mark.parametrize("name", CORPORA)
def test_a_recipe_copies_and_says_so_when_it_cannot(name: str) -> None:
    load_recipe(name)
    with pytest.raises(seqloom.SeqloomError, match=r"set text\.shared = true"):
        load_recipe(name, ["text.shared=false", "model.tie=output"])
