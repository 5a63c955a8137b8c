"""seqloom prepare"""

import os
import shutil
import threading
import time
from pathlib import Path

import pytest
from filelock import FileLock

from support.cli_runner import run_cli


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    lines = [f"a {n} b\tb {n} c\n" for n in range(200)]
    (tmp_path / "pairs.tsv").write_text("".join(lines))
    path = tmp_path / "recipe.toml"
    path.write_text(
        f'preset = "low-resource"\n[data]\nfolder = "{tmp_path}"\n'
        'train = { kind = "tsv", path = "pairs.tsv" }\n'
        '[text]\ntokenizer = { kind = "characters" }\n'
    )
    return path


def folders(output: str) -> list[Path]:
    return [Path(line.strip()) for line in output.splitlines() if line.startswith("  /")]


def test_prepare_reports_each_split_and_its_folder(recipe: Path) -> None:
    result = run_cli("prepare", str(recipe), "--workers", "2")
    assert result.exit_code == 0
    train, dev = folders(result.stdout)
    assert (train / "report.json").is_file()
    assert (dev / "report.json").is_file()
    assert "train: " in result.stdout
    again = run_cli("prepare", str(recipe), "--verify")
    assert (again.exit_code, again.stdout) == (0, result.stdout)


def test_verify_lists_files_that_have_changed(recipe: Path) -> None:
    train, _ = folders(run_cli("prepare", str(recipe)).stdout)
    path = train / "00000" / "target.ids"
    status = path.stat()
    path.write_bytes(bytes(status.st_size))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    result = run_cli("prepare", str(recipe), "--verify")
    assert result.exit_code == 74
    assert f"{path}: was changed after it was written" in result.stderr
    assert f"Delete these folders, then prepare the data again:\n  {train}" in result.stderr


def test_damaged_shard_is_named_and_built_again(recipe: Path) -> None:
    first = run_cli("prepare", str(recipe))
    train, _ = folders(first.stdout)
    path = train / "00000" / "target.ids"
    path.write_bytes(path.read_bytes()[:-1])
    result = run_cli("prepare", str(recipe))
    assert (result.exit_code, result.stdout) == (0, first.stdout)
    assert "built again from the unchanged data" in result.stderr
    assert str(path) in result.stderr
    assert run_cli("prepare", str(recipe), "--verify").stderr == ""


def test_changed_data_file_is_named_and_prepared_again(recipe: Path) -> None:
    first = run_cli("prepare", str(recipe))
    assert first.stderr == ""
    path = recipe.with_name("pairs.tsv")
    path.write_text(path.read_text().replace("b", "d"))
    changed = run_cli("prepare", str(recipe))
    assert f"changed since they were last prepared, so they are prepared again: {path}" in (
        changed.stderr
    )
    assert folders(changed.stdout)[0] != folders(first.stdout)[0]
    assert run_cli("prepare", str(recipe)).stderr == ""


def test_prepare_says_that_it_waits_for_another_process(recipe: Path) -> None:
    train, _ = folders(run_cli("prepare", str(recipe)).stdout)
    shutil.rmtree(train)
    is_locked = threading.Event()

    def hold_lock() -> None:
        with FileLock(train.with_name(f".lock-{train.name}")):
            is_locked.set()
            time.sleep(1)

    thread = threading.Thread(target=hold_lock)
    thread.start()
    assert is_locked.wait(20)
    result = run_cli("prepare", str(recipe))
    thread.join()
    assert result.exit_code == 0
    assert "waiting for another process that prepares the same data" in result.stderr


def test_error_for_an_unwritable_folder_names_the_variable_to_set(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    result = run_cli("prepare", str(recipe))
    assert result.exit_code == 74
    assert "set XDG_CACHE_HOME to a writable folder" in result.stderr
