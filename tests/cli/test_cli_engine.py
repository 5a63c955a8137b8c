"""--engine in translate and evaluate."""

import json
from pathlib import Path

import pytest

from seqloom.inference.engine.select import INT8_IS_FASTER
from seqloom.training.loop import train
from support.cli_runner import run_cli
from support.tiny_runs import tiny_config

pytestmark = pytest.mark.slow

SIDES = tuple(
    f"model.{side}={{kind='transformer', width=16, layers=1, feedforward=32, attention={{heads=2}}}}"
    for side in ("encoder", "decoder")
)
LETTERS = tuple(f"data.{split}.symbols=12" for split in ("train", "dev", "test"))
DEFAULT_PRECISION = "int8" if INT8_IS_FASTER else "float32"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("engine") / "run"
    train(tiny_config(*SIDES, *LETTERS, "training.steps=60"), folder)
    return folder


def test_translate_prints_an_unexpected_engine_in_one_line(run: Path) -> None:
    fast = run_cli("translate", run, stdin=b"abc\n\nbl\n")
    assert fast.exit_code == 0
    assert fast.stderr.startswith(f"Engine: CTranslate2 with {DEFAULT_PRECISION} weights. On ")
    assert len(fast.stderr.splitlines()) == 1
    assert fast.stdout.count("\n") == 3
    assert fast.stdout.splitlines()[1] == ""
    assert run_cli("translate", run, "--engine", "torch", stdin=b"abc\n").stderr == ""
    exact = run_cli("translate", run, "--set", "engine.precision=float32", stdin=b"abc\n")
    assert exact.stderr.startswith("Engine: CTranslate2 with float32 weights")


def test_unsupported_request_is_an_error_only_for_an_explicit_engine(run: Path) -> None:
    sampled = ("--set", "decoding.kind=sample")
    auto = run_cli("translate", run, *sampled, stdin=b"abc\n")
    assert auto.exit_code == 0
    assert auto.stderr.startswith("Engine: torch (decoding.kind: 'sample'")
    named = run_cli("translate", run, *sampled, "--engine", "ctranslate2", stdin=b"abc\n")
    assert named.exit_code == 78
    assert "decoding.kind: 'sample'" in named.stderr
    aligned = run_cli("translate", run, "--alignments", "--engine", "ctranslate2", stdin=b"abc\n")
    assert aligned.exit_code == 78
    assert "attention" in aligned.stderr


@pytest.mark.parametrize("command", ["translate", "evaluate"])
def test_unknown_engine_is_rejected(run: Path, command: str) -> None:
    result = run_cli(command, run, "--engine", "fast")
    assert result.exit_code == 2
    assert "'fast' is not one of 'auto', 'torch'" in result.error


def test_evaluate_uses_torch_by_default(run: Path) -> None:
    plain = run_cli("evaluate", run, "--json")
    assert json.loads(plain.stdout)["engine"] == "torch"
    fast = run_cli("evaluate", run, "--json", "--engine", "ctranslate2")
    assert json.loads(fast.stdout)["engine"] == f"ctranslate2 {DEFAULT_PRECISION}"
    assert f"Engine: CTranslate2 with {DEFAULT_PRECISION} weights" in fast.stderr


@pytest.mark.parametrize("kind", ["greedy", "beam"])
def test_ctranslate2_has_the_scores_of_torch(run: Path, kind: str) -> None:
    options = ("--scores", "--set", f"decoding.kind={kind}", "--set", "engine.precision=float32")
    fast = run_cli("translate", run, *options, stdin=b"abc\nblla\n")
    expected = run_cli("translate", run, *options, "--engine", "torch", stdin=b"abc\nblla\n")
    assert fast.stderr.startswith("Engine: CTranslate2 with float32 weights")
    assert len(expected.stdout.splitlines()) == 2
    for line, expected_line in zip(
        fast.stdout.splitlines(), expected.stdout.splitlines(), strict=True
    ):
        text, score = line.split(" ||| ")
        expected_text, expected_score = expected_line.split(" ||| ")
        assert text == expected_text
        assert float(score) == pytest.approx(float(expected_score), abs=2e-4)


def test_n_best_contains_the_log_probability_of_every_token(run: Path) -> None:
    result = run_cli("translate", run, "--n-best", "2", "--beam", "3", stdin=b"abc\n")
    for line in result.stdout.splitlines():
        _, text, steps, score = (field.strip() for field in line.split("|||"))
        values = [float(value) for value in steps.split()]
        assert len(values) >= len(text)
        # The score is log p per token, without END.
        assert float(score) == pytest.approx(sum(values) / (len(values) - 1), abs=1e-3)
