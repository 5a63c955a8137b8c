"""--quiet, --threads and --device, before and after the name of a command."""

import os
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from seqloom.core.device import as_current_device, best_device
from seqloom.core.errors import ConfigError
from support.cli_runner import run_cli

pytestmark = pytest.mark.slow


def test_quiet_removes_progress_and_notes_but_not_results(reverse: Path) -> None:
    loud = run_cli("evaluate", reverse)
    quiet = run_cli("evaluate", reverse, "--quiet")
    assert "Outputs and scores are in" in loud.stderr
    assert quiet.stderr == ""
    assert quiet.stdout == loud.stdout


def test_quiet_applies_to_one_call_of_the_program(reverse: Path) -> None:
    assert run_cli("evaluate", reverse, "--quiet").stderr == ""
    assert run_cli("evaluate", reverse).stderr != ""


def test_quiet_training_prints_nothing(recipes: Path, tmp_path: Path) -> None:
    arguments = (
        "train",
        recipes / "reverse.toml",
        "--set",
        "training.steps=2",
    )
    result = run_cli("--quiet", *arguments, "--run", tmp_path / "run", terminal=True)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_quiet_keeps_warnings_and_errors(recipes: Path, reverse: Path) -> None:
    settings = ("--beam", "2", "--set", "decoding.width=3")
    warned = run_cli("translate", reverse, "--quiet", *settings, stdin=b"a b\n")
    assert "warning: --beam 2 overrides" in warned.stderr
    failed = run_cli("--quiet", "train", recipes / "missing.toml")
    assert failed.exit_code == 66
    assert "error: " in failed.stderr


@pytest.mark.parametrize("position", ["before", "after"])
def test_threads_sets_the_number_of_torch_threads(
    position: str, reverse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, str | None]] = []

    def record() -> torch.device:
        seen.append((torch.get_num_threads(), os.environ.get("OMP_NUM_THREADS")))
        return torch.device("cpu")

    monkeypatch.setattr("seqloom.inference.run.best_device", record)
    before = os.environ.get("OMP_NUM_THREADS")
    option, command = ("--threads", "3"), ("translate", reverse)
    arguments = (*option, *command) if position == "before" else (*command, *option)
    try:
        assert run_cli(*arguments, stdin=b"a b\n").exit_code == 0
    finally:
        torch.set_num_threads(1)
    assert seen == [(3, "3")]
    assert os.environ.get("OMP_NUM_THREADS") == before


def test_the_device_applies_to_one_call_of_the_program(reverse: Path) -> None:
    assert run_cli("translate", reverse, "--device", "cpu", stdin=b"a b\n").exit_code == 0
    assert "SEQLOOM_DEVICE" not in os.environ


@pytest.mark.parametrize("command", ["translate", "evaluate", "train"])
def test_a_gpu_that_does_not_exist_is_an_error(
    command: str, reverse: Path, recipes: Path, tmp_path: Path
) -> None:
    if command == "train":
        arguments: tuple[object, ...] = (recipes / "reverse.toml", "--run", tmp_path / "run")
    else:
        arguments = (reverse,)
    result = run_cli(command, *arguments, "--device", "cuda:3")
    assert result.exit_code == ConfigError.exit_code
    assert "device cuda:3: torch finds no GPU. Use --device cpu" in result.error


def test_a_misspelled_device_is_a_usage_error(reverse: Path) -> None:
    result = run_cli("translate", reverse, "--device", "gpu")
    assert result.exit_code == 2
    assert "'gpu' is not a device. Use cpu, cuda, or cuda:1" in result.error


def test_the_error_for_a_missing_gpu_lists_the_existing_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("SEQLOOM_DEVICE", "cuda:2")
    with pytest.raises(ConfigError, match=r"This machine has 2 GPUs: cuda:0 to cuda:1\."):
        best_device()
    monkeypatch.setenv("SEQLOOM_DEVICE", "cpu")
    assert best_device() == torch.device("cpu")
    monkeypatch.setenv("SEQLOOM_DEVICE", "tpu")
    with pytest.raises(ConfigError, match="SEQLOOM_DEVICE=tpu: is not a device"):
        best_device()


def test_the_gpu_of_a_run_becomes_the_current_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads other than the main thread start with the first GPU."""
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext(device))
    with as_current_device(torch.device("cuda", 1)) as device:
        assert device == torch.device("cuda", 1)
    with as_current_device(torch.device("cpu")) as device:
        assert device is None
