"""Every bundled recipe that needs no folder of data trains and predicts without a network."""

import json
import socket
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from seqloom.config.loading.bundled import bundled_recipes
from seqloom.config.loading.loader import load_bundled_recipe
from support.cli_runner import run_cli, set_options

pytestmark = pytest.mark.slow

OFFLINE = [
    name
    for name in sorted(bundled_recipes())
    if load_bundled_recipe(name).config.data.expected is None
]
TASK_LINES = {
    *("demo", "questions", "tatoeba-languages", "tatoeba-fr-en-attention", "scenes", "robot"),
    *("language-id", "capitals", "frames-label", "gesture-label", "case-rnn", "tatoeba-english"),
}


def test_every_task_line_has_a_recipe_without_files() -> None:
    assert set(OFFLINE) >= TASK_LINES


@pytest.fixture(scope="module", autouse=True)
def few_sentences() -> Iterator[None]:
    """Read only a few bundled sentences. Most of the time would be spent on tokenising all."""
    from seqloom.data.readers import text_files
    from seqloom.data.readers.generated import synthetic

    def read_few(path: Path) -> Iterator[str]:
        return islice(text_files.read_lines(path), 0, 1000, 20)

    synthetic._sentences.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seqloom.data.readers.bundled.read_lines", read_few)
        yield
    synthetic._sentences.cache_clear()


def predict(name: str, run: Path, folder: Path) -> str:
    """Predict one output with the command of the recipe's task, and return it."""
    task = load_bundled_recipe(name).config.task
    match task.kind:
        case "language-model":
            arguments = ["complete", run, "--samples", 1, "--seed", 1]
        case "captioning":
            # The caption of a model of two steps may be empty, but it has an END.
            arguments = ["caption", run, "scene:red circle 30 20 12;blue square 60 70 14", "--json"]
        case "forecast":
            rows = [f"{n},{n},0.5,0.5" for n in range(8)] + [",,0.5,0.5"] * 12
            (folder / "path.csv").write_text("x,y,left,right\n" + "\n".join(rows) + "\n")
            arguments = ["forecast", run, folder / "path.csv"]
        case "labels":
            text = "1,0 0.5,0.5" if name in ("frames-label", "gesture-label") else "ein haus"
            arguments = ["label", run, text]
        case _:
            to = ["--to", "fr"] if name == "tatoeba-languages" else []
            source = b"<U> I am\n" if name.startswith("case") else b"I am a student.\n"
            result = run_cli("translate", run, "--json", *to, stdin=source)
            assert result.exit_code == 0, result.stderr
            [output] = json.loads(result.stdout)["outputs"]
            return json.dumps(output["pieces"])
    result = run_cli(*arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("name", OFFLINE)
def test_a_recipe_trains_and_predicts_offline(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("the recipe opens a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    config = load_bundled_recipe(name).config
    settings = [
        "training.steps=2",
        "training.batch_tokens=256",
        "training.evaluate_every=2",
        "training.evaluate_examples=2",
    ]
    if config.text.tokenizer.kind == "subwords":
        settings.append("text.tokenizer.size=150")
    for split in ("train", "dev"):
        [corpus, *others] = getattr(config.data, split)
        if hasattr(corpus, "examples") and not others:
            settings.append(f"data.{split}.examples=30")
    run = tmp_path / "run"
    result = run_cli("train", name, "--run", run, *set_options(*settings))
    assert result.exit_code == 0, result.stderr
    assert predict(name, run, tmp_path).strip()
