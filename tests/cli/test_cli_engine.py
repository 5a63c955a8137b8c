"""--engine: what computes, chosen and told."""

import json
from pathlib import Path

import pytest
from calling import call

from seqloom.runs.engine.select import INT8_IS_FASTER
from seqloom.training.loop import train
from tiny_runs import recipe

SIDES = tuple(
    f"model.{side}={{kind='transformer', width=16, layers=1, feedforward=32, attention={{heads=2}}}}"
    for side in ("encoder", "decoder")
)
LETTERS = tuple(f"data.{split}.symbols=12" for split in ("train", "dev", "test"))


USUAL = "int8" if INT8_IS_FASTER else "float32"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("engine") / "run"
    train(recipe(*SIDES, *LETTERS, "training.steps=60"), folder)
    return folder


def test_translate_says_in_one_line_what_computes(run: Path) -> None:
    quick = call("translate", run, given=b"abc\n\nbl\n")
    assert quick.code == 0
    assert quick.err.startswith(f"engine: ctranslate2 {USUAL} (mean")
    assert len(quick.err.splitlines()) == 1
    assert quick.out.count("\n") == 3
    assert quick.out.splitlines()[1] == ""
    assert call("translate", run, "--engine", "torch", given=b"abc\n").err == ""
    exact = call("translate", run, "--set", "engine.precision=float32", given=b"abc\n")
    assert exact.err.startswith("engine: ctranslate2 float32")


def test_what_cannot_be_done_is_an_error_only_if_it_was_asked_for_by_name(run: Path) -> None:
    sampled = ("--set", "decoding.kind=sample")
    auto = call("translate", run, *sampled, given=b"abc\n")
    assert auto.code == 0
    assert auto.err.startswith("engine: torch (decoding.kind: 'sample'")
    named = call("translate", run, *sampled, "--engine", "ctranslate2", given=b"abc\n")
    assert named.code == 78
    assert "decoding.kind: 'sample' is done by torch alone" in named.err
    aligned = call("translate", run, "--alignments", "--engine", "ctranslate2", given=b"abc\n")
    assert aligned.code == 78
    assert "attention" in aligned.err


@pytest.mark.parametrize("command", ["translate", "evaluate"])
def test_an_engine_that_does_not_exist_is_told_at_once(run: Path, command: str) -> None:
    answer = call(command, run, "--engine", "fast")
    assert answer.code == 2
    assert "there is no engine 'fast'" in answer.err


def test_evaluate_is_torchs_unless_told_otherwise(run: Path) -> None:
    plain = call("evaluate", run, "--json")
    assert json.loads(plain.out)["engine"] == "torch"
    quick = call("evaluate", run, "--json", "--engine", "ctranslate2")
    assert json.loads(quick.out)["engine"] == f"ctranslate2 {USUAL}"
    assert f"engine: ctranslate2 {USUAL}" in quick.err


@pytest.mark.parametrize("kind", ["greedy", "beam"])
def test_scores_are_those_of_torch_whatever_the_search(run: Path, kind: str) -> None:
    how = ("--scores", "--set", f"decoding.kind={kind}", "--set", "engine.precision=float32")
    quick = call("translate", run, *how, given=b"abc\nblla\n")
    ours = call("translate", run, *how, "--engine", "torch", given=b"abc\nblla\n")
    assert quick.err.startswith("engine: ctranslate2 float32")
    assert len(ours.out.splitlines()) == 2
    for one, other in zip(quick.out.splitlines(), ours.out.splitlines(), strict=True):
        (text, score), (same, known) = one.split(" ||| "), other.split(" ||| ")
        assert text == same
        assert float(score) == pytest.approx(float(known), abs=2e-4)


def test_n_best_and_json_have_the_probabilities_of_pieces(run: Path) -> None:
    many = call("translate", run, "--n-best", "2", "--beam", "3", given=b"abc\n")
    for line in many.out.splitlines():
        _, text, steps, score = (field.strip() for field in line.split("|||"))
        values = [float(value) for value in steps.split()]
        assert len(values) >= len(text)
        assert float(score) == pytest.approx(sum(values) / len(values), abs=1e-3)
