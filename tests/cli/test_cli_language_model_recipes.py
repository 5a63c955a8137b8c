"""The bundled language model recipes on small data: train, move, evaluate, complete."""

import gzip
import json
import random
import shutil
from pathlib import Path

import pytest

import seqloom
from support.cli_runner import run_cli, set_options

pytestmark = pytest.mark.slow

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
    """Files in the format of the datasets: articles with blank lines, and speeches."""
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
def test_recipe_trains_evaluates_and_completes_after_a_move(
    name: str, texts: Path, tmp_path: Path
) -> None:
    small = [f"model.decoder.{change}" for change in RECIPES[name]]
    changes = [f"data.folder={texts}", *QUICK, *small]
    made = tmp_path / "made"
    trained = run_cli("train", name, "--run", made, *set_options(*changes))
    assert trained.exit_code == 0, trained.stderr
    moved = tmp_path / "elsewhere" / "run"
    moved.parent.mkdir()
    shutil.move(made, moved)

    evaluated = run_cli("evaluate", moved, "--json")
    assert evaluated.exit_code == 0, evaluated.stderr
    report = json.loads(evaluated.stdout)
    scores = {score["name"]: score["value"] for score in report["scores"]}
    run = seqloom.load(moved)
    for score in run.evaluate("test").scores:
        assert score.value == pytest.approx(scores[score.name])
    shown = run_cli("evaluate", moved).stdout
    assert "perplexity" in shown
    if name.startswith("wikitext2"):  # a token is a word
        assert scores["perplexity"] == pytest.approx(scores["perplexity per word"])
    else:  # or a character
        assert scores["nats per token"] == pytest.approx(scores["nats per character"])

    prompt = "the king" if name.startswith("wikitext2") else "KING:"
    options = ("--samples", 2, "--seed", 7, "--set", "decoding.stop_at_newline=true")
    completed = run_cli("complete", moved, prompt, *options)
    assert completed.exit_code == 0, completed.stderr
    lines = completed.stdout.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(prompt) for line in lines)
    (drawn,) = run.complete([prompt], n_best=2)
    assert len(drawn) == 2
    assert all(output.text.startswith(prompt) for output in drawn)


def test_texts_of_several_lines_are_separated_by_a_blank_line(texts: Path, tmp_path: Path) -> None:
    changes = [f"data.folder={texts}", *QUICK, "model.decoder.width=16"]
    trained = run_cli(
        "train", "shakespeare-lstm", "--run", tmp_path / "run", *set_options(*changes)
    )
    assert trained.exit_code == 0, trained.stderr
    completed = run_cli(
        "complete", tmp_path / "run", "KING:\nthe", "QUEEN", "--set", "decoding.max_length=40"
    )
    assert completed.stdout.startswith("KING:\nthe")
    assert "\n\nQUEEN" in completed.stdout


def test_max_length_beyond_the_positions_gives_a_warning(texts: Path, tmp_path: Path) -> None:
    decoder = (*SMALL, "positions={kind='learned', max_length=256}")
    changes = [f"data.folder={texts}", *QUICK, *(f"model.decoder.{setting}" for setting in decoder)]
    trained = run_cli(
        "train", "shakespeare-transformer", "--run", tmp_path / "run", *set_options(*changes)
    )
    assert trained.exit_code == 0, trained.stderr
    completed = run_cli(
        "complete", tmp_path / "run", "--seed", 1, "--set", "decoding.max_length=300"
    )
    assert "texts end at 256 tokens, the maximum length of the model" in completed.stderr
    assert len(completed.stdout) == 256 + 1


def test_doctor_accepts_blank_and_repeated_lines(texts: Path) -> None:
    small = set_options(f"data.folder={texts}", "model.decoder.width=16")
    valid = run_cli("doctor", "shakespeare-lstm", *small, "--json")
    assert valid.exit_code == 0, valid.stderr
    report = json.loads(valid.stdout)
    # The test data are smaller than the data set that the recipe expects.
    [finding] = report["findings"]
    assert (finding["level"], finding["where"]) == ("warning", "data")
    assert "1 of 1 files have another size" in finding["what"]
    assert report["worst_batch"]["target_length"] == 256
    missing = run_cli("doctor", "wikitext2-lstm", "--set", "data.folder=/nowhere")
    assert missing.exit_code == 66
    assert "wikitext2.train.txt.gz" in missing.stdout
    long = run_cli("doctor", "shakespeare-lstm", *small, "--set", "training.batch_tokens=100")
    assert "256 tokens" in " ".join(long.stdout.split())
