"""The recipes of language models, end to end in miniature: on text of the same format."""

import gzip
import json
import random
import shutil
from pathlib import Path

import pytest
from calling import call

import seqloom

WORDS = ("the", "of", "a", "in", "king", "cat", "dog", "saw", "was", ",", ".", "<unk>", "@-@", "'s")
SMALL = ("width=16", "layers=1", "feedforward=16", "attention.heads=2")
RECIPES = {
    "wikitext2-lstm": ("width=16", "embedding={width=8, word_dropout=0.1}"),
    "wikitext2-transformer": SMALL,
    "shakespeare-lstm": ("width=16", "embedding.width=8"),
    "shakespeare-transformer": SMALL,
}
QUICK = (
    "training.steps=4",
    "training.schedule.warmup=1",
    "training.batch_tokens=1024",
    "training.evaluate_every=2",
    "training.checkpoint_every=4",
)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files named and written as those of the data sets: articles and blank lines, or speeches."""
    folder = tmp_path_factory.mktemp("texts")
    draw = random.Random(1)

    def article() -> str:
        lines = [" ".join(draw.choices(WORDS, k=draw.randint(5, 30))) for _ in range(4)]
        return f" = {draw.choice(WORDS)} = \n \n" + "".join(f" {line} \n" for line in lines)

    for split, articles in (("train", 40), ("valid", 8), ("test", 8)):
        with gzip.open(folder / f"wikitext2.{split}.txt.gz", "wt", encoding="utf-8") as file:
            file.write("".join(article() for _ in range(articles)))
    with gzip.open(folder / "tinyshakespeare.txt.gz", "wt", encoding="utf-8") as file:
        for _ in range(150):
            speech = " ".join(draw.choices(WORDS[:9], k=draw.randint(3, 20)))
            file.write(f"{draw.choice(('KING', 'QUEEN'))}:\n{speech.capitalize()}.\n\n")
    return folder


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_trains_scores_and_completes_wherever_its_run_lies(
    name: str, texts: Path, tmp_path: Path
) -> None:
    small = [f"model.decoder.{change}" for change in RECIPES[name]]
    changes = [f"data.folder={texts}", *QUICK, *small]
    there = tmp_path / "there"
    made = call(
        "train", name, "--run", there, *(part for one in changes for part in ("--set", one))
    )
    assert made.code == 0, made.err
    moved = tmp_path / "elsewhere" / "run"
    moved.parent.mkdir()
    shutil.move(there, moved)

    scored = call("evaluate", moved, "--json")
    assert scored.code == 0, scored.err
    report = json.loads(scored.out)
    units = {score["name"]: score["value"] for score in report["scores"]}
    run = seqloom.load(moved)
    for score in run.evaluate("test").scores:
        assert score.value == pytest.approx(units[score.name])
    shown = call("evaluate", moved).out
    assert "ends of lines among them, no END" in shown
    if name.startswith("wikitext2"):  # a token is a word
        assert units["perplexity"] == pytest.approx(units["perplexity per word"])
    else:  # or a character
        assert units["nats per token"] == pytest.approx(units["nats per character"])

    prompt = "the king" if name.startswith("wikitext2") else "KING:"
    options = ("--samples", 2, "--seed", 7, "--set", "decoding.one_line=true")
    said = call("complete", moved, prompt, *options)
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(prompt) for line in lines)
    (drawn,) = run.complete([prompt], n_best=2)
    assert len(drawn) == 2
    assert all(one.text.startswith(prompt) for one in drawn)


def test_texts_of_many_lines_are_kept_apart_by_a_blank_one(texts: Path, tmp_path: Path) -> None:
    changes = [f"data.folder={texts}", *QUICK, "model.decoder.width=16"]
    settings = [part for one in changes for part in ("--set", one)]
    made = call("train", "shakespeare-lstm", "--run", tmp_path / "run", *settings)
    assert made.code == 0, made.err
    said = call(
        "complete", tmp_path / "run", "KING:\nthe", "QUEEN", "--set", "decoding.max_length=40"
    )
    assert said.out.startswith("KING:\nthe")
    assert "\n\nQUEEN" in said.out


def test_a_text_longer_than_positions_reach_is_told_of(texts: Path, tmp_path: Path) -> None:
    changes = [f"data.folder={texts}", *QUICK, *(f"model.decoder.{one}" for one in SMALL)]
    settings = [part for one in changes for part in ("--set", one)]
    made = call("train", "shakespeare-transformer", "--run", tmp_path / "run", *settings)
    assert made.code == 0, made.err
    said = call("complete", tmp_path / "run", "--seed", 1, "--set", "decoding.max_length=300")
    assert "texts stop at 256 tokens, where the model's positions end" in said.err
    assert len(said.out) == 256 + 1


def test_the_doctor_finds_nothing_odd_about_blank_and_repeated_lines(texts: Path) -> None:
    found = call("doctor", "shakespeare-lstm", "--set", f"data.folder={texts}", "--json")
    assert found.code == 0, found.err
    report = json.loads(found.out)
    assert report["findings"] == []
    assert report["worst_batch"]["target_length"] == 256
    missing = call("doctor", "wikitext2-lstm", "--set", "data.folder=/nowhere")
    assert missing.code == 66
    assert "wikitext2.train.txt.gz" in missing.out
    long = call(
        *("doctor", "shakespeare-lstm", "--set", f"data.folder={texts}"),
        *("--set", "training.batch_tokens=100"),
    )
    assert "a window of 256 tokens is longer than a whole batch" in " ".join(long.out.split())
