"""A folder may be checked before there is anything to load it with; that lets no damage through."""

import shutil
from pathlib import Path

import pytest

from seqloom.cli.options import existing_run
from seqloom.core.errors import StorageError
from seqloom.core.storage import write_file
from seqloom.runs.folder import integrity as soundness
from seqloom.runs.folder.integrity import WEIGHTS, check_run, run_damage, start_check, weights_store
from seqloom.runs.run import load
from seqloom.training.loop import train
from tiny_runs import recipe


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("early") / "run"
    train(recipe(), folder)
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every folder that was gone through, in order."""
    through: list[Path] = []

    def counted(folder: Path) -> list[str]:
        through.append(folder)
        return run_damage(folder)

    monkeypatch.setattr(soundness, "run_damage", counted)
    return through


def weights_of(run: Path) -> Path:
    place = weights_store(run).current_path()
    assert place is not None
    return place / WEIGHTS


def flip_a_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_what_was_checked_early_is_not_gone_through_again(run: Path, looks: list[Path]) -> None:
    start_check(run)
    assert load(run).translate(["ab"])
    assert looks == [run]


def test_every_command_begins_early(run: Path, looks: list[Path]) -> None:
    assert existing_run(run) == run
    assert run in soundness._background_checks
    assert check_run(run) == []
    assert looks == [run]


def test_damage_that_was_found_early_is_told_when_the_run_is_loaded(run: Path) -> None:
    flip_a_bit(weights_of(run))
    start_check(run)
    with pytest.raises(StorageError, match="its SHA-256 differs"):
        load(run)


def test_an_early_check_counts_once(run: Path, looks: list[Path]) -> None:
    start_check(run)
    load(run)
    flip_a_bit(weights_of(run))
    with pytest.raises(StorageError, match="its SHA-256 differs"):
        load(run)
    assert looks == [run, run]


def test_what_a_training_wrote_in_the_meantime_is_checked(run: Path, looks: list[Path]) -> None:
    start_check(run)
    soundness._background_checks[run].thread.join()
    content = weights_of(run).read_bytes()
    weights_store(run).add(10**6, lambda new: write_file(new / WEIGHTS, content), 1)
    flip_a_bit(weights_of(run))
    with pytest.raises(StorageError, match="its SHA-256 differs"):
        load(run)
    assert looks == [run, run]


def test_a_check_that_failed_is_made_again(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(folder: Path) -> list[str]:
        raise RuntimeError("no more threads, no more memory")

    monkeypatch.setattr(soundness, "run_damage", failing)
    start_check(run)
    soundness._background_checks[run].thread.join()
    monkeypatch.undo()
    assert check_run(run) == []
