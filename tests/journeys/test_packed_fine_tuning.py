"""A model is fine-tuned, interrupted, resumed, packed and served: every way to use it agrees."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import seqloom
from support.cli_runner import run_cli
from support.server_process import ServerProcess, start_server
from support.tiny_runs import LETTERS, tiny_config

pytestmark = pytest.mark.slow

TEXTS = ["abcd", "dcb", "", "aa"]
SPLIT = {**LETTERS, "task": "copy", "examples": 30}
RECIPE = {"data": dict.fromkeys(("train", "dev", "test"), SPLIT)}
STEPS = ("training.steps=6", "training.evaluate_every=3", "training.checkpoint_every=2")


class Interrupted(Exception):
    """Ends a training in the middle."""


@pytest.fixture(scope="module")
def fine_tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fine-tuning that was interrupted at step 4 and resumed."""
    folder = tmp_path_factory.mktemp("journey")
    seqloom.train(tiny_config(*STEPS), folder / "parent")

    def interrupt(event: object) -> None:
        if getattr(event, "step", 0) >= 4:
            raise Interrupted

    child = folder / "child"
    with pytest.raises(Interrupted):
        seqloom.fine_tune(RECIPE, folder / "parent", child, settings=STEPS, report=interrupt)
    seqloom.train(child, child, resume=True)
    return child


@pytest.fixture(scope="module")
def packed(fine_tuned: Path) -> Path:
    path = fine_tuned.with_name("child.seqloom")
    assert run_cli("pack", fine_tuned, path).exit_code == 0
    return path


@pytest.fixture(scope="module")
def server(packed: Path) -> Iterator[ServerProcess]:
    running = start_server([packed])
    yield running
    running.stop()


def test_the_packed_run_and_its_folder_have_the_same_outputs(
    fine_tuned: Path, packed: Path
) -> None:
    outputs = [seqloom.load(run).translate(TEXTS, beam=3) for run in (fine_tuned, packed)]
    assert [(one.text, one.score) for one in outputs[0]] == [
        (one.text, one.score) for one in outputs[1]
    ]
    assert any(one.text for one in outputs[0])


def test_command_line_and_server_return_the_outputs_of_python(
    packed: Path, server: ServerProcess
) -> None:
    expected = [one.text for one in seqloom.load(packed).translate(TEXTS, beam=3)]
    lines = "".join(f"{text}\n" for text in TEXTS).encode()
    printed = run_cli("translate", packed, "--beam", "3", stdin=lines).stdout.splitlines()
    assert printed == expected
    answer = server.post_json("/api/translate", texts=TEXTS, beam=3)
    assert [one["text"] for one in answer["translations"]] == expected


def test_scores_of_the_evaluation_are_the_same_from_the_folder_and_the_packed_run(
    fine_tuned: Path, packed: Path
) -> None:
    reports = [
        json.loads(run_cli("evaluate", run, "--split", "dev", "--json").stdout)
        for run in (fine_tuned, packed)
    ]
    assert reports[0]["scores"] == reports[1]["scores"]


@pytest.mark.parametrize("options", [(), ("--resume",)])
def test_training_a_packed_run_is_refused_with_the_two_ways_to_go_on(
    packed: Path, options: tuple[str, ...]
) -> None:
    result = run_cli("train", packed, *options)
    assert result.exit_code == 78
    assert "is a packed run, which has no checkpoints" in result.error
    assert f"--from {packed}" in result.error


def test_a_packed_run_can_be_fine_tuned(packed: Path, tmp_path: Path) -> None:
    assert seqloom.fine_tune(RECIPE, packed, tmp_path / "grandchild", settings=STEPS).step == 6
