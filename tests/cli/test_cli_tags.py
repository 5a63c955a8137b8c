"""The commands warn if a text has no tag, but the task of the run is chosen by a tag."""

import json
from pathlib import Path

import pytest

from support.cli_runner import run_cli
from support.tagged_runs import ADVICE, train_tagged_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tagged_run(tmp_path_factory.mktemp("runs") / "case")


def test_translate_prints_one_warning_with_count_lines_and_tags(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seqloom.jobs.batch_translation.portions.CPU_PORTION", 2)
    lines = ["ab", "<U> ab", "", "b", "<L> b", "aa", "ab", "ba", "bb"]
    result = run_cli("translate", run, stdin="\n".join(lines).encode())
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == len(lines)
    warnings = [line for line in result.stderr.splitlines() if "tags" in line]
    assert len(warnings) == 1
    assert warnings[0].startswith(
        f"warning: 6 of 9 lines (lines 1, 4, 6, 7, 8, …) have {ADVICE}. If the training texts"
    )


def test_translate_does_not_warn_about_tagged_lines(run: Path) -> None:
    assert "tags" not in run_cli("translate", run, stdin=b"<U> ab\n\n<L> AB\n").stderr


def test_json_contains_the_warning_of_each_output(run: Path) -> None:
    result = run_cli("translate", run, "--json", stdin=b"ab\n<U> ab\n")
    outputs = [json.loads(line)["outputs"][0] for line in result.stdout.splitlines()]
    assert [len(output["warnings"]) for output in outputs] == [1, 0]


@pytest.mark.parametrize("command", ["inspect", "search", "explain"])
def test_commands_that_look_inside_warn(run: Path, command: str) -> None:
    result = run_cli(command, run, "ab")
    assert result.exit_code == 0, result.stderr
    assert result.stderr.count(ADVICE) == 1
    assert ADVICE not in run_cli(command, run, "<U> ab").stderr


def test_compare_warns(run: Path) -> None:
    assert ADVICE in run_cli("compare", run, run, "--text", "ab", "--text", "<U> ab").stderr


def test_evaluate_on_tagged_data_does_not_warn(run: Path) -> None:
    assert ADVICE not in run_cli("evaluate", run).stderr
