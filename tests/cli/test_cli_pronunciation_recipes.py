"""The bundled pronunciation recipes on small data: train, move, evaluate, translate."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from seqloom.core.errors import ConfigError
from seqloom.inference.run import load
from support.cli_runner import run_cli, set_options

pytestmark = pytest.mark.slow

PHONES = {"a": "AH", "b": "B", "k": "K", "o": "OW", "t": "T", "e": "˧˥"}
SMALL = {
    "cmudict-g2p": ["width=16", "layers=1", "feedforward=16", "dropout=0.0"],
    "sigmorphon-g2p": ["width=16", "dropout=0.0"],
}
FILES = {"cmudict-g2p": "g2p.{}.tsv.gz", "sigmorphon-g2p": "fre_{}.tsv.gz"}
every_recipe = pytest.mark.parametrize("name", SMALL)


def make_lines(split: str) -> list[str]:
    """Words of three letters. A word that starts with "o" has two pronunciations."""
    letters = sorted(PHONES)
    words = [f"{x}{y}{z}" for x in letters for y in letters for z in letters]
    remainders = {"train": (0, 1), "dev": (2,), "test": (3,)}[split]
    lines = []
    for number, word in enumerate(words):
        if number % 4 in remainders:
            lines.append(f"{word}\t{' '.join(PHONES[letter] for letter in word)}")
            if word.startswith("o"):
                lines.append(f"{word}\tAA {' '.join(PHONES[letter] for letter in word[1:])}")
    return lines


def train_run(name: str, folder: Path) -> Path:
    for split in ("train", "dev", "test"):
        with gzip.open(folder / FILES[name].format(split), "wt", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in make_lines(split)))
    settings = [
        *(f"model.{side}.{setting}" for side in ("encoder", "decoder") for setting in SMALL[name]),
        *("training.steps=12", "training.evaluate_every=6", "training.schedule.warmup=2"),
        *("training.batch_tokens=256", "training.compile=false", f"data.folder={folder}"),
        *(["model.encoder.attention.heads=2"] if name == "cmudict-g2p" else []),
    ]
    result = run_cli("train", name, "--run", folder / "run", *set_options(*settings))
    assert result.exit_code == 0, result.stderr
    assert "word error rate" in result.stderr
    return folder / "run"


@pytest.fixture(scope="module", params=SMALL)
def moved(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """The name of a recipe, and its run folder, moved after training."""
    folder = train_run(request.param, tmp_path_factory.mktemp("pronunciation"))
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "run"
    shutil.move(folder, elsewhere)
    return request.param, elsewhere


def test_word_and_phoneme_error_rates_use_all_pronunciations(
    moved: tuple[str, Path],
) -> None:
    _, folder = moved
    result = run_cli("evaluate", folder, "--json")
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    words = {line.split("\t")[0] for line in make_lines("test")}
    assert report["sentences"] == len(words) < len(make_lines("test"))
    names = [score["name"] for score in report["scores"]]
    assert names[:2] == ["word error rate", "phoneme error rate"]
    python = {score.name: score.value for score in load(folder).evaluate("test").scores}
    for score in report["scores"][:2]:
        assert 0 <= score["value"] == pytest.approx(python[score["name"]])


def test_translate_prints_phonemes(moved: tuple[str, Path]) -> None:
    _, folder = moved
    result = run_cli("translate", folder, stdin=b"kat\n\nbob\n")
    assert result.exit_code == 0, result.stderr
    first, blank, second, _ = result.stdout.split("\n")
    assert blank == ""
    assert [prediction.text for prediction in load(folder).translate(["kat", "bob"])] == [
        first,
        second,
    ]
    assert {*first.split(), *second.split()} <= {"AA", *PHONES.values()}


def test_best_checkpoint_has_the_lowest_word_error_rate(moved: tuple[str, Path]) -> None:
    _, folder = moved
    events = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    evaluations: list[dict[str, Any]] = [line for line in events if line["event"] == "evaluate"]
    best = [each["word-error-rate"] for each in evaluations if each["best"]]
    assert best == sorted(best, reverse=True)
    assert min(each["word-error-rate"] for each in evaluations) == best[-1]


@every_recipe
def test_doctor_names_a_missing_file(name: str, tmp_path: Path) -> None:
    result = run_cli("doctor", name, "--set", f"data.folder={tmp_path}")
    assert result.exit_code == 66
    assert FILES[name].format("train") in result.stdout + result.stderr


def test_translation_run_has_no_labels(moved: tuple[str, Path]) -> None:
    _, folder = moved
    with pytest.raises(ConfigError, match="a run for translation has no labels"):
        load(folder).label(["kat"])
