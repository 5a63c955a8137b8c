"""seqloom prepare"""

import os
from pathlib import Path

import pytest

from cli_runner import run_cli


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


def test_error_for_an_unwritable_folder_names_the_variable_to_set(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    result = run_cli("prepare", str(recipe))
    assert result.exit_code == 74
    assert "set XDG_CACHE_HOME to a writable folder" in result.stderr
