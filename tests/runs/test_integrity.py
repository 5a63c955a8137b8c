"""Integrity checks in the background report the same damage as checks during loading."""

import hashlib
import shutil
from pathlib import Path

import pytest

from seqloom.cli.options import existing_run
from seqloom.core.errors import StorageError
from seqloom.core.storage import write_file
from seqloom.inference.run import load
from seqloom.runs import integrity
from seqloom.runs.integrity import (
    WEIGHTS,
    check_run,
    prefix_damage,
    run_damage,
    start_check,
    weights_store,
)
from seqloom.training.loop import train
from support.tiny_runs import tiny_config

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("integrity") / "run"
    train(tiny_config(), folder)
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of the trained run."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that were checked completely, in order."""
    folders: list[Path] = []

    def recording_run_damage(folder: Path) -> list[str]:
        folders.append(folder)
        return run_damage(folder)

    monkeypatch.setattr(integrity, "run_damage", recording_run_damage)
    return folders


def weights_file(run: Path) -> Path:
    path = weights_store(run).current_path()
    assert path is not None
    return path / WEIGHTS


def flip_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_load_uses_the_result_of_a_background_check(run: Path, checked: list[Path]) -> None:
    start_check(run)
    assert load(run).translate(["ab"])
    assert checked == [run]


def test_commands_start_a_background_check(run: Path, checked: list[Path]) -> None:
    assert existing_run(run) == run
    assert run in integrity._background_checks
    assert check_run(run) == []
    assert checked == [run]


def test_damage_found_in_the_background_is_raised_by_load(run: Path) -> None:
    flip_bit(weights_file(run))
    start_check(run)
    with pytest.raises(StorageError, match="SHA-256 differs"):
        load(run)


def test_background_check_is_used_once(run: Path, checked: list[Path]) -> None:
    start_check(run)
    load(run)
    flip_bit(weights_file(run))
    with pytest.raises(StorageError, match="SHA-256 differs"):
        load(run)
    assert checked == [run, run]


def test_background_check_is_repeated_if_training_changed_the_folder(
    run: Path, checked: list[Path]
) -> None:
    start_check(run)
    integrity._background_checks[run].thread.join()
    content = weights_file(run).read_bytes()
    weights_store(run).add(10**6, lambda new: write_file(new / WEIGHTS, content), 1)
    flip_bit(weights_file(run))
    with pytest.raises(StorageError, match="SHA-256 differs"):
        load(run)
    assert checked == [run, run]


def test_failed_background_check_is_repeated(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing_run_damage(folder: Path) -> list[str]:
        raise RuntimeError("no more threads, no more memory")

    monkeypatch.setattr(integrity, "run_damage", failing_run_damage)
    start_check(run)
    integrity._background_checks[run].thread.join()
    monkeypatch.undo()
    assert check_run(run) == []


def test_damage_to_the_checked_part_of_a_growing_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"first second")
    digest = hashlib.sha256(b"first").hexdigest()
    assert prefix_damage(path, 5, digest) == []
    path.write_bytes(b"fIrst second")
    assert prefix_damage(path, 5, digest) == [
        f"{path}: has changed since it was written (SHA-256 differs)"
    ]
    path.write_bytes(b"firs")
    assert prefix_damage(path, 5, digest) == [f"{path}: has 4 bytes, expected at least 5"]
    path.unlink()
    assert prefix_damage(path, 5, digest) == [f"{path}: is missing"]
