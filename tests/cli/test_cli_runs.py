"""seqloom runs lists run folders without torch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from seqloom.cli.parameters.completion import complete_recipe, complete_run
from seqloom.runs.listing import find_runs, read_listed_run
from support.cli_runner import run_cli
from support.source_folder import SOURCE

pytestmark = pytest.mark.slow


def test_every_run_is_listed_with_its_facts(reverse: Path, sentences: Path) -> None:
    result = run_cli("runs", reverse.parent, "--json")
    listed = {Path(run["folder"]).name: run for run in json.loads(result.stdout)}
    assert {"reverse", "sentences"} <= set(listed)
    run = listed["reverse"]
    assert (run["task"], run["status"], run["problem"]) == ("translation", "finished", None)
    assert run["data"].startswith("synthetic reverse")
    assert run["step"] == run["steps"] > 0
    events = [json.loads(line) for line in (reverse / "metrics.jsonl").read_text().splitlines()]
    assert (run["best"], run["best_step"]) == (events[-1]["best"], events[-1]["best_step"])
    assert listed["sentences"]["task"] == "language-model"
    table = run_cli("runs", reverse.parent).stdout
    assert all(run["folder"] in table for run in listed.values())


def test_an_unreadable_recipe_is_a_warning_and_the_other_runs_are_listed(
    reverse: Path, tmp_path: Path
) -> None:
    (tmp_path / "deep" / "good").parent.mkdir()
    (tmp_path / "deep" / "good").symlink_to(reverse)
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "config.toml").write_text("[trainin]\n", encoding="utf-8")
    (bad / "manifest.json").touch()
    (bad / "metrics.jsonl").write_text('{"event": "step", "step": 3, "time": 1.0}\n{"ev')
    assert [folder.name for folder in find_runs(bad)] == ["bad"]
    listed = read_listed_run(bad)
    assert (listed.step, listed.status, listed.task) == (3, "not finished", None)
    result = run_cli("runs", tmp_path)
    assert result.exit_code == 0
    assert f"{tmp_path / 'deep' / 'good'}  translation" in result.stdout
    assert f"warning: {bad}: the recipe cannot be read" in result.stderr


def test_hidden_folders_and_folders_inside_runs_are_not_listed(tmp_path: Path) -> None:
    for name in ("one", ".hidden/two", "one/weights/three", "deep/four"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        for file in ("config.toml", "manifest.json"):
            (folder / file).touch()
    assert [str(path.relative_to(tmp_path)) for path in find_runs(tmp_path)] == ["deep/four", "one"]


def test_folders_without_runs_and_missing_folders_have_a_message(tmp_path: Path) -> None:
    assert "contains no runs" in run_cli("runs", tmp_path).stderr
    missing = run_cli("runs", tmp_path / "missing")
    assert missing.exit_code == 66
    assert "no such folder. Give a folder that contains runs" in missing.error


def test_runs_and_recipes_are_completed(
    reverse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "first").symlink_to(reverse)
    (tmp_path / "runs" / "other").mkdir()
    (tmp_path / "demo-mine.toml").touch()
    (tmp_path / "text.txt").touch()
    monkeypatch.chdir(tmp_path)
    assert complete_run("") == ["runs/first", "runs/other/", "runs/"]
    assert complete_run("runs/f") == ["runs/first"]
    assert complete_run("nowhere/f") == []
    assert complete_recipe("demo") == ["demo", "demo-mine.toml"]
    assert "text.txt" not in complete_recipe("")


@pytest.mark.parametrize(
    ("words", "expected"),
    [("seqloom translate ru", "runs/"), ("seqloom train multi30k-de-en-f", "multi30k-de-en-fast")],
)
def test_the_shell_completes_without_torch(words: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    program = (
        "import sys\nfrom seqloom.cli.main import run\n"
        "try:\n    run()\nfinally:\n    print('torch' in sys.modules, file=sys.stderr)"
    )
    environment = {
        "PYTHONPATH": str(SOURCE),
        "_SEQLOOM_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    process = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert process.stdout.split() == [expected]
    assert process.stderr.split()[-1] == "False"
