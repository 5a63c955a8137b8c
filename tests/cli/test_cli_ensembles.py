"""Runs that are asked together, on the command line."""

import json
from pathlib import Path

import pytest
from calling import call
from cli_workshop import trained, workshop_at


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = workshop_at(tmp_path_factory.mktemp("ensembles"))
    trained(folder, "reverse")
    trained(folder, "sentences")
    recipe, run = folder / "reverse.toml", folder / "runs" / "second"
    answer = call("train", recipe, "--run", run, "--set", "training.seed=2")
    assert answer.code == 0, answer.err
    return folder


def test_two_runs_translate_and_score_as_one(workshop: Path) -> None:
    first, second = workshop / "runs" / "reverse", workshop / "runs" / "second"
    text = workshop / "given.txt"
    text.write_text("abcd\n\nba\n", encoding="utf-8")
    asked: dict[str, list[object]] = {
        "first": [first],
        "second": [second],
        "both": [first, "--with", second],
        "both, the other way": [second, "--with", first],
    }
    outputs = {name: call("translate", *runs, text, "--scores") for name, runs in asked.items()}
    assert {answer.code for answer in outputs.values()} == {0}
    assert all(len(answer.out.splitlines()) == 3 for answer in outputs.values())
    assert outputs["both"].out == outputs["both, the other way"].out
    assert outputs["both"].out not in (outputs["first"].out, outputs["second"].out)
    scores = call("score", first, text, text, "--with", second)
    assert scores.out not in (call("score", first, text, text).out, "")


def test_an_ensemble_is_evaluated_and_lower_case_on_request(workshop: Path) -> None:
    first, second = workshop / "runs" / "reverse", workshop / "runs" / "second"
    answer = call("evaluate", first, "--with", second, "--lowercase", "--json")
    assert answer.code == 0, answer.err
    record = json.loads(answer.out)
    assert record["run"] == f"{first} + {second}"
    signatures = {score["name"]: score["signature"] for score in record["scores"]}
    assert "case:lc" in signatures["BLEU lower-cased"]
    assert "case:mixed" in signatures["BLEU"]
    assert (first / "evaluation" / "test-ensemble" / "outputs.txt").is_file()
    plain = json.loads(call("evaluate", first, "--json").out)
    assert "BLEU lower-cased" not in {score["name"] for score in plain["scores"]}
    assert (first / "evaluation" / "test").is_dir()


def test_language_models_complete_as_one(workshop: Path) -> None:
    run = workshop / "runs" / "sentences"
    alone = call("complete", run, "I", "--seed", "3")
    assert alone.code == 0
    assert call("complete", run, "I", "--seed", "3", "--with", run).out == alone.out


def test_a_run_that_is_not_there_or_does_not_fit_is_named(workshop: Path) -> None:
    run = workshop / "runs" / "reverse"
    answer = call("translate", run, "--with", workshop / "nowhere")
    assert answer.code == 66
    assert f"{workshop / 'nowhere'}: there is no such run folder" in answer.err
    answer = call("translate", run, "--with", workshop / "runs" / "sentences", given=b"ab\n")
    assert answer.code == 78
    assert "is for language-model, but" in answer.err


def test_minimum_bayes_risk_is_chosen_by_a_setting(workshop: Path) -> None:
    run = workshop / "runs" / "reverse"
    settings = ["--set", "decoding.kind=minimum-bayes-risk", "--set", "decoding.samples=8"]
    answer = call("translate", run, "--scores", *settings, given=b"abcd\n\nba\n")
    assert answer.code == 0, answer.err
    first, blank, last = answer.out.splitlines()
    assert blank.startswith(" ||| ")
    assert 0 <= float(first.split(" ||| ")[1]) <= 100
    assert 0 <= float(last.split(" ||| ")[1]) <= 100
