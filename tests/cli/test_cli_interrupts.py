"""Ctrl-C: at every moment, a command ends with a message, exit code 130 and no traceback."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seqloom.cli.process import interrupts
from seqloom.cli.process.interrupts import CommandInterrupted, catch_interrupts
from support.cli_runner import run_cli
from support.source_folder import SOURCE

pytestmark = pytest.mark.slow

PROGRAM = """
import os, signal
from seqloom.cli.process.entry import run
install = signal.signal
def install_and_announce(*arguments):
    result = install(*arguments)
    signal.signal = install
    os.write(1, b"started")
    return result
signal.signal = install_and_announce
run()
"""
"""Runs the command line. Announces on stdout that the handler of SIGINT is installed."""


@pytest.mark.parametrize("delay", [0.0, pytest.param(0.1, marks=pytest.mark.long), 0.4, 1.5])
def test_process_ends_without_a_traceback_at_every_moment(
    delay: float, recipes: Path, tmp_path: Path
) -> None:
    """The process imports the command line, then torch, then reads the data."""
    recipe = str(recipes / "reverse.toml")
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "train", recipe, "--set", "training.steps=1000000"],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdout is not None
    assert process.stdout.read(7) == "started"
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Interrupted" in errors
    assert "Traceback" not in errors


def interrupted(target: str, on_call: int = 1) -> pytest.MonkeyPatch:
    """Send SIGINT to this process in a call of the function `target`, then call the function."""
    patch = pytest.MonkeyPatch()
    module, _, name = target.rpartition(".")
    owner: Any = pytest.importorskip(module) if "." in module else None
    function: Callable[..., Any] = getattr(owner, name)
    calls = 0

    def send_signal(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == on_call:
            signal.raise_signal(signal.SIGINT)
        return function(*arguments, **named)

    patch.setattr(owner, name, send_signal)
    return patch


@pytest.mark.parametrize(
    "moment",
    [
        "seqloom.runs.recipe.load_recipe",
        "seqloom.training.setup.learn_task",
        "seqloom.training.setup.build_model",
        "seqloom.training.setup.create_run",
    ],
)
def test_training_without_a_run_folder_says_how_to_start_again(
    moment: str, recipes: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    patch = interrupted(moment)
    try:
        result = run_cli("train", recipes / "reverse.toml", "--run", folder)
    finally:
        patch.undo()
    assert result.exit_code == 130
    lines = result.stderr.splitlines()
    assert lines[-1].endswith(f"seqloom train {recipes / 'reverse.toml'} --run {folder}")
    assert any(line.startswith("Interrupted before ") for line in lines)
    assert [path for path in tmp_path.iterdir() if path.name != "run"] == []
    assert not folder.exists()


def test_training_without_a_checkpoint_says_how_to_resume(recipes: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    patch = interrupted("seqloom.training.setup.build_optimizer")
    try:
        result = run_cli("train", recipes / "reverse.toml", "--run", folder)
    finally:
        patch.undo()
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-2:] == [
        f"Interrupted. {folder} has no checkpoint yet, so training will start from the first step. "
        "To resume, run:",
        f"  seqloom train {folder} --resume",
    ]
    resumed = run_cli("train", folder, "--resume")
    assert resumed.exit_code == 0, resumed.stderr


def test_second_ctrl_c_names_the_last_checkpoint(
    recipes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seqloom.training import loop

    folder, take_step = tmp_path / "run", loop.take_step

    def interrupt_twice(session: Any) -> Any:
        if session.step == 40:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        return take_step(session)

    monkeypatch.setattr(loop, "take_step", interrupt_twice)
    result = run_cli("train", recipes / "reverse.toml", "--run", folder)
    assert result.exit_code == 130
    assert f"{folder} has the checkpoint of step 30, from which training resumes." in result.stderr


def test_interrupted_training_says_how_to_resume(
    recipes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seqloom.training import loop

    folder, take_step = tmp_path / "run", loop.take_step

    def interrupt(session: Any) -> Any:
        if session.step == 4:
            signal.raise_signal(signal.SIGINT)
        return take_step(session)

    monkeypatch.setattr(loop, "take_step", interrupt)
    result = run_cli("train", recipes / "reverse.toml", "--run", folder)
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-2:] == [
        f"Interrupted. {folder} has a checkpoint of step 5. To resume, run:",
        f"  seqloom train {folder} --resume",
    ]


def test_interrupted_evaluation_stores_nothing_and_says_so(reverse: Path, tmp_path: Path) -> None:
    run = shutil.copytree(reverse, tmp_path / "run")
    shutil.rmtree(run / "evaluation", ignore_errors=True)
    patch = interrupted("seqloom.inference.run.likelihood_scores")
    try:
        result = run_cli("evaluate", run)
    finally:
        patch.undo()
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == (
        "Interrupted. No scores were stored. To repeat the evaluation, run: "
        f"seqloom evaluate {run}\n"
    )
    assert not (run / "evaluation").exists()


def test_interrupted_comparison_names_the_scores_that_are_stored(
    reverse: Path, worse: Path
) -> None:
    patch = interrupted("seqloom.inference.run.likelihood_scores", on_call=2)
    try:
        result = run_cli("evaluate", reverse, "--against", worse)
    finally:
        patch.undo()
    assert result.exit_code == 130
    message = result.stderr.splitlines()[-1]
    assert message.startswith(
        f"Interrupted. The scores in {worse}/evaluation/test are complete. To repeat"
    )


def test_interrupted_doctor_says_that_there_is_no_result(recipes: Path) -> None:
    patch = interrupted("seqloom.data.checks.doctor.collect_statistics")
    try:
        result = run_cli("doctor", recipes / "reverse.toml")
    finally:
        patch.undo()
    assert (result.exit_code, result.stdout) == (130, "")
    assert "The check is incomplete and has no result. To repeat it, run: " in result.stderr


def test_interrupted_translation_to_stdout_says_how_many_lines_were_written(
    reverse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seqloom.jobs.batch_translation.portions.CPU_PORTION", 2)
    patch = interrupted("seqloom.cli.process.line_output.flush_output", on_call=2)
    try:
        result = run_cli("translate", reverse, stdin=b"ab\ncd\nab\ncd\n")
    finally:
        patch.undo()
    assert result.exit_code == 130
    assert result.stderr.startswith(
        "Interrupted. Standard output has the translations of the first 2 input lines. "
    )


def test_exception_that_replaces_a_keyboard_interrupt_counts_as_ctrl_c() -> None:
    def fail() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("a compiled module failed to import") from None

    with pytest.raises(CommandInterrupted), catch_interrupts():
        fail()


def test_other_exceptions_are_not_ctrl_c() -> None:
    with pytest.raises(ValueError, match="other"), catch_interrupts():
        raise ValueError("other")


def test_ignored_sigint_stays_ignored_and_handlers_are_restored() -> None:
    before = signal.getsignal(signal.SIGINT)
    with catch_interrupts():
        assert signal.getsignal(signal.SIGINT) == interrupts._interrupts.handle
    assert signal.getsignal(signal.SIGINT) == before
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with catch_interrupts():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_interrupt_in_a_destructor_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    class Interrupting:
        def __del__(self) -> None:
            raise KeyboardInterrupt

    with catch_interrupts():
        item = Interrupting()
        del item
    assert capsys.readouterr().err == ""


def test_interruption_while_options_are_parsed_has_a_message() -> None:
    """typer turns the KeyboardInterrupt into an exit without a message."""

    def parse_options() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        except KeyboardInterrupt:
            sys.exit(130)

    with pytest.raises(CommandInterrupted, match="Interrupted"), catch_interrupts():
        parse_options()
