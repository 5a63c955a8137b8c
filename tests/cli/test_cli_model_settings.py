"""`--set model.…attention.…` changes how the attention of a trained run is computed."""

import json
from pathlib import Path

import pytest

import seqloom
from seqloom.core.errors import ConfigError
from seqloom.inference.run import load
from seqloom.training.loop import train
from support.cli_runner import run_cli, set_options
from support.tiny_runs import TRANSFORMER, tiny_config

pytestmark = pytest.mark.slow

ARGMAX = "model.decoder.attention.selection=argmax"
DOT = ("model.decoder.attention.score.kind=dot", "model.decoder.attention.projection=linear")
TEXTS = ["abcd", "dcba", "abab", "ccda"]
STDIN = "\n".join(TEXTS).encode()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recurrent model whose attention weights are soft."""
    folder = tmp_path_factory.mktemp("runs") / "dot"
    train(tiny_config(*DOT, "training.steps=20"), folder)
    return folder


@pytest.fixture(scope="module")
def transformer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "transformer"
    train(tiny_config(*TRANSFORMER, "training.steps=4", "decoding.width=2"), folder)
    return folder


def translate(run: Path, *settings: str) -> str:
    result = run_cli("translate", run, "--scores", *set_options(*settings), stdin=STDIN)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize(
    "setting",
    [
        ARGMAX,
        "model.decoder.attention.selection=nearest",
        "model.decoder.attention.selection=exact",
        "model.decoder.attention.score.scale=one",
        "model.decoder.attention.score.scale=width",
    ],
)
def test_translations_are_those_of_python_with_the_same_setting(run: Path, setting: str) -> None:
    output = translate(run, setting)
    assert output != translate(run)
    predictions = seqloom.load(run, settings=[setting]).translate(TEXTS)
    expected = [f"{each.text} ||| {each.score:.4f}" for each in predictions]
    assert output.splitlines() == expected


def test_gamma_of_a_trained_run_can_be_changed(tmp_path: Path) -> None:
    settings = ("model.decoder.attention.score.kind=rbf", DOT[1], "training.steps=20")
    train(tiny_config(*settings), tmp_path / "rbf")
    gamma = "model.decoder.attention.score.gamma=30"
    assert translate(tmp_path / "rbf", gamma) != translate(tmp_path / "rbf")


def test_inspect_explain_and_search_use_hard_attention(run: Path) -> None:
    hard = set_options(ARGMAX)
    inspected = json.loads(run_cli("inspect", run, "abcd", *hard, "--json").stdout)
    assert {weight for row in inspected["outputs"][0]["weights"] for weight in row} == {0, 1}
    explained = json.loads(run_cli("explain", run, "abcd", *hard, "--json").stdout)
    weights = next(part for part in explained["parts"] if part["name"] == "weights")
    assert sorted(weights["values"]) == [0, 0, 0, 0, 1]
    assert weights["formula"] == "α = 1 for the best score, else 0"
    searched = json.loads(run_cli("search", run, "abcd", *hard, "--json").stdout)
    [expected] = load(run, [ARGMAX]).translate(["abcd"])
    assert searched["outputs"][0]["score"] == pytest.approx(expected.score)


def test_compare_applies_the_setting_to_both_runs(run: Path) -> None:
    result = run_cli("compare", run, run, "--text", "abcd", *set_options(ARGMAX), "--json")
    [pair] = json.loads(result.stdout)["pairs"]
    [expected] = load(run, [ARGMAX]).translate(["abcd"])
    assert [output["text"] for output in pair["outputs"]] == [expected.text] * 2


def test_evaluate_reports_the_changed_setting(run: Path) -> None:
    soft = json.loads(run_cli("evaluate", run, "--json").stdout)
    result = run_cli("evaluate", run, "--json", *set_options(ARGMAX))
    hard = json.loads(result.stdout)
    assert (soft["settings"], hard["settings"]) == ([], [ARGMAX])
    assert hard["scores"] != soft["scores"]
    assert "They replace a report that differs in settings." in result.stderr
    assert f"with the settings {ARGMAX}" in run_cli("evaluate", run, *set_options(ARGMAX)).stdout
    assert load(run).evaluate().changed_settings(run) == ["settings"]


def test_the_engine_is_torch_with_a_stated_reason(transformer: Path) -> None:
    result = run_cli("translate", transformer, *set_options(ARGMAX), stdin=STDIN)
    assert result.exit_code == 0
    reason = "model.decoder.attention.selection: only 'softmax' is supported"
    assert f"Engine: torch ({reason}" in result.stderr
    forced = run_cli(
        "translate", transformer, "--engine", "ctranslate2", *set_options(ARGMAX), stdin=STDIN
    )
    assert forced.exit_code == 78
    assert reason in forced.stderr


def test_settings_that_do_not_fit_the_weights_are_rejected_together(run: Path) -> None:
    wrong = ("model.decoder.width=4", "model.decoder.attention.heads=2", ARGMAX, "model.tie=all")
    for command in ("translate", "evaluate", "inspect", "explain", "search", "complete"):
        result = run_cli(command, run, *set_options(*wrong), stdin=b"abc\n")
        assert (result.exit_code, result.stdout) == (78, ""), command
        for setting in (wrong[0], wrong[1], wrong[3]):
            assert f"--set {setting}: the model is already trained" in result.stderr
        assert f"--set {ARGMAX}" not in result.stderr
        assert "for example model.decoder.attention.selection=argmax" in result.stderr


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.decoder.attention.selection=hard", "must be 'softmax' or 'argmax'"),
        ("model.decoder.attention.score.gamma=2", "there is no such setting"),
        ("model.encoder.attention.selection=argmax", "there is no such setting"),
    ],
)
def test_settings_that_the_model_does_not_have_are_rejected(
    run: Path, setting: str, message: str
) -> None:
    result = run_cli("translate", run, "--set", setting, stdin=b"abc\n")
    assert (result.exit_code, result.stdout) == (78, "")
    assert message in result.stderr


def test_python_names_the_settings_that_do_not_fit_the_weights(run: Path) -> None:
    with pytest.raises(ConfigError, match=r"do not fit the settings model\.decoder\.width=4"):
        load(run, ["model.decoder.width=4"])
