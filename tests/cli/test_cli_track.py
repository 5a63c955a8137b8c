"""seqloom track: the event log in TensorBoard."""

import json
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seqloom.jobs.tracking import journal
from support.cli_runner import run_cli

pytestmark = pytest.mark.slow


def read_tensorboard(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """The scalars of a folder: (step, value) by name."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder))
    accumulator.Reload()
    return {
        name: [(event.step, event.value) for event in accumulator.Scalars(name)]
        for name in accumulator.Tags()["scalars"]
    }


def logged(run: Path, kind: str, name: str) -> list[tuple[int, float]]:
    events = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [(event["step"], event[name]) for event in events if event["event"] == kind]


def test_tensorboard_has_the_numbers_of_the_event_log_once(reverse: Path, tmp_path: Path) -> None:
    for _ in range(2):
        result = run_cli("track", reverse, "--out", tmp_path)
        assert result.exit_code == 0, result.stderr
    scalars = read_tensorboard(tmp_path / reverse.name)
    for kind, group, name in (("step", "train", "loss"), ("evaluate", "dev", "chrf2")):
        steps, values = zip(*scalars[f"{group}/{name}"], strict=True)
        expected_steps, expected_values = zip(*logged(reverse, kind, name), strict=True)
        assert steps == expected_steps
        assert values == pytest.approx(expected_values)
    assert "dev/best" not in scalars


def test_following_ends_with_the_training(reverse: Path, tmp_path: Path) -> None:
    run = shutil.copytree(reverse, tmp_path / "run")
    log = run / "metrics.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:2]) + lines[2][:10])  # the third event is not complete
    found: list[journal.Scalars] = []
    follower = threading.Thread(target=lambda: found.extend(journal.read_scalars(run, follow=True)))
    waits, is_complete = threading.Event(), threading.Event()

    def wait(seconds: float) -> None:
        waits.set()
        assert is_complete.wait(10)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "time", SimpleNamespace(sleep=wait))
        follower.start()
        assert waits.wait(10)
        assert follower.is_alive()
        with log.open("ab") as file:
            file.write(lines[2][10:] + b"".join(lines[3:]))
        is_complete.set()
        follower.join(10)
    assert not follower.is_alive()
    assert found == list(journal.read_scalars(reverse, follow=False))


def test_missing_log_and_missing_package_are_errors(
    reverse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = shutil.copytree(reverse, tmp_path / "run")
    (run / "metrics.jsonl").unlink()
    result = run_cli("track", run, "--out", tmp_path)
    assert result.exit_code == 66
    assert "there is no event log" in result.stderr

    def missing(*_: Any) -> None:
        raise ImportError

    monkeypatch.setattr("seqloom.core.extras.importlib.import_module", missing)
    result = run_cli("track", reverse, "--to", "wandb", "--out", tmp_path)
    assert result.exit_code == 66
    assert "pip install 'seqloom[wandb]'" in result.stderr
