"""Ensembles: --with in every command that takes it."""

import json
from pathlib import Path

import pytest
from cli_recipes import train_recipe, write_recipes

from support.cli_runner import run_cli

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_recipes(tmp_path_factory.mktemp("ensembles"))
    train_recipe(folder, "reverse")
    train_recipe(folder, "sentences")
    second = folder / "runs" / "second"
    result = run_cli("train", folder / "reverse.toml", "--run", second, "--set", "training.seed=2")
    assert result.exit_code == 0, result.stderr
    return folder


def test_ensemble_translates_and_scores(recipes: Path) -> None:
    first, second = recipes / "runs" / "reverse", recipes / "runs" / "second"
    text = recipes / "input.txt"
    text.write_text("abcd\n\nba\n", encoding="utf-8")
    runs: dict[str, list[object]] = {
        "first": [first],
        "second": [second],
        "both": [first, "--with", second],
        "both, reversed": [second, "--with", first],
    }
    outputs = {
        name: run_cli("translate", *arguments, text, "--scores") for name, arguments in runs.items()
    }
    assert {result.exit_code for result in outputs.values()} == {0}
    assert all(len(result.stdout.splitlines()) == 3 for result in outputs.values())
    assert outputs["both"].stdout == outputs["both, reversed"].stdout
    assert outputs["both"].stdout not in (outputs["first"].stdout, outputs["second"].stdout)
    scores = run_cli("score", first, text, text, "--with", second)
    assert scores.stdout not in (run_cli("score", first, text, text).stdout, "")


def test_ensemble_is_evaluated_and_lower_cased_bleu_is_optional(recipes: Path) -> None:
    first, second = recipes / "runs" / "reverse", recipes / "runs" / "second"
    result = run_cli("evaluate", first, "--with", second, "--lowercase", "--json")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert record["run"] == f"{first} + {second}"
    signatures = {score["name"]: score["signature"] for score in record["scores"]}
    assert "case:lc" in signatures["BLEU lower-cased"]
    assert "case:mixed" in signatures["BLEU"]
    assert (first / "evaluation" / "test-ensemble" / "outputs.txt").is_file()
    plain = json.loads(run_cli("evaluate", first, "--json").stdout)
    assert "BLEU lower-cased" not in {score["name"] for score in plain["scores"]}
    assert (first / "evaluation" / "test").is_dir()


def test_ensemble_of_a_model_with_itself_completes_like_the_model(recipes: Path) -> None:
    run = recipes / "runs" / "sentences"
    single = run_cli("complete", run, "I", "--seed", "3")
    assert single.exit_code == 0
    assert run_cli("complete", run, "I", "--seed", "3", "--with", run).stdout == single.stdout


def test_missing_or_incompatible_member_is_rejected(recipes: Path) -> None:
    run = recipes / "runs" / "reverse"
    result = run_cli("translate", run, "--with", recipes / "nowhere")
    assert result.exit_code == 66
    assert f"{recipes / 'nowhere'}: no such run folder" in result.stderr
    result = run_cli("translate", run, "--with", recipes / "runs" / "sentences", stdin=b"ab\n")
    assert result.exit_code == 78
    assert "task 'language-model'" in result.stderr


def test_minimum_bayes_risk_decoding_is_a_setting(recipes: Path) -> None:
    run = recipes / "runs" / "reverse"
    settings = ["--set", "decoding.kind=minimum-bayes-risk", "--set", "decoding.samples=8"]
    result = run_cli("translate", run, "--scores", *settings, stdin=b"abcd\n\nba\n")
    assert result.exit_code == 0, result.stderr
    first, blank, last = result.stdout.splitlines()
    assert blank.startswith(" ||| ")
    assert 0 <= float(first.split(" ||| ")[1]) <= 100
    assert 0 <= float(last.split(" ||| ")[1]) <= 100
