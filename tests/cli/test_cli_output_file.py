"""seqloom translate --output: the file, and the errors about unfinished and existing files."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from seqloom.core.locks import wait_for_lock
from seqloom.jobs.batch_translation.output_file import OutputFile, open_output_file
from support.cli_runner import CliResult, run_cli

pytestmark = pytest.mark.slow


@pytest.fixture
def input_file(tmp_path: Path) -> Path:
    path = tmp_path / "input"
    path.write_text("ab\n\ncd\n", encoding="utf-8")
    return path


def unfinished(run: Path, input_file: Path, output: Path, *options: str) -> bytes:
    """Write an output, then turn it into an unfinished one. Returns the complete output."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "seqloom.jobs.batch_translation.output_file.FileLines.complete", lambda lines: None
        )
        result = run_cli("translate", run, input_file, "--output", output, *options)
    assert result.exit_code == 0, result.stderr
    return OutputFile(output).partial.read_bytes()


@pytest.mark.parametrize("options", [(), ("--json",), ("--n-best", 2, "--scores")])
def test_file_has_the_bytes_that_stdout_would_have(
    reverse: Path, input_file: Path, tmp_path: Path, options: tuple[object, ...]
) -> None:
    expected = run_cli("translate", reverse, input_file, *options).stdout
    result = run_cli("translate", reverse, input_file, "--output", tmp_path / "out", *options)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert (tmp_path / "out").read_text(encoding="utf-8") == expected
    assert {path.name for path in tmp_path.iterdir()} == {"input", "out"}


def test_existing_file_is_kept_without_overwrite(
    reverse: Path, input_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"
    output.write_text("old", encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr("seqloom.inference.run.load", None)  # the error comes before loading
        result = run_cli("translate", reverse, input_file, "--output", output)
    assert result.exit_code == 78
    assert "the file exists already. Add --overwrite to replace it" in result.stderr
    assert output.read_text(encoding="utf-8") == "old"
    assert (
        run_cli("translate", reverse, input_file, "--output", output, "--overwrite").exit_code == 0
    )
    assert output.read_text(encoding="utf-8") != "old"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("input", "differ in input files"),
        ("run", "differ in runs"),
        ("--scores", "differ in --scores"),
        ("--beam=2", "differ in --beam"),
        ("partial", "has fewer bytes than"),
        ("record", "progress.json is missing"),
        ('{"lines"', "progress.json: is damaged"),
        ('{"lines": 2}', "progress.json: is damaged (its keys are not lines, bytes"),
        ("[]", "progress.json: is damaged"),
        ("stdin", "a translation of standard input cannot be continued"),
    ],
)
def test_changed_request_is_an_error_that_names_overwrite(
    reverse: Path, worse: Path, input_file: Path, tmp_path: Path, change: str, message: str
) -> None:
    output = tmp_path / "out"
    partial = unfinished(reverse, input_file, output)
    run, options, files, stdin = reverse, [], [input_file], b""
    if change == "input":
        input_file.write_text("ab\n\ncc\n", encoding="utf-8")
    elif change == "run":
        run = worse
    elif change == "partial":
        OutputFile(output).partial.write_bytes(partial[:-1])
    elif change == "record":
        OutputFile(output).record.unlink()
    elif change == "stdin":
        files, stdin = [], b"ab\n"
    elif change[0] in "{[":
        OutputFile(output).record.write_text(change, encoding="utf-8")
    else:
        options = [change]

    def translate(*more: str) -> CliResult:
        return run_cli("translate", run, *files, "--output", output, *options, *more, stdin=stdin)

    result = translate()
    assert result.exit_code in (74, 78)
    assert message in result.stderr
    assert "add --overwrite" in result.stderr.lower()
    assert not output.exists()
    assert translate("--overwrite").exit_code == 0
    assert output.exists()
    assert not OutputFile(output).record.exists()


@pytest.mark.parametrize("request_or_stdin", [{"options": {}}, None])
def test_an_output_that_was_killed_before_its_first_record_starts_again(
    tmp_path: Path, request_or_stdin: dict[str, Any] | None
) -> None:
    files = OutputFile(tmp_path / "out")
    files.partial.touch()
    with open_output_file(files, request_or_stdin, overwrite=False) as lines:
        assert lines.finished == 0
        lines.write("line")
    assert files.path.read_bytes() == b"line\n"
    assert [*tmp_path.iterdir()] == [files.path]


def test_unchanged_request_continues_from_another_folder(
    reverse: Path, input_file: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    expected = unfinished(reverse, input_file, output)
    moved_run = shutil.copytree(reverse, tmp_path / "moved")
    moved_input = shutil.copy(input_file, tmp_path / "moved-input")
    result = run_cli("translate", moved_run, moved_input, "--output", output)
    assert result.stderr == f"{output}: continues after line 3 of the input.\n"
    assert output.read_bytes() == expected


def test_a_damaged_record_of_an_output_that_replaces_a_file_is_reported(
    reverse: Path, input_file: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    output.write_text("old", encoding="utf-8")
    unfinished(reverse, input_file, output, "--overwrite")
    OutputFile(output).record.write_bytes(b"")
    result = run_cli("translate", reverse, input_file, "--output", output)
    assert result.exit_code == 74
    assert "out.progress.json: is damaged" in result.stderr
    assert output.read_text(encoding="utf-8") == "old"


def test_options_that_do_not_change_the_output_may_change(
    reverse: Path, input_file: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    expected = unfinished(reverse, input_file, output)
    options = ("--quiet", "--threads", torch.get_num_threads(), "--device", "cpu")
    result = run_cli("translate", reverse, input_file, "--output", output, *options)
    assert (result.exit_code, result.stderr) == (0, "")
    assert output.read_bytes() == expected


def test_standard_input_is_written_to_a_file_with_a_note(reverse: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    result = run_cli("translate", reverse, "--output", output, stdin=b"ab\n")
    assert result.exit_code == 0
    assert "cannot be continued after an interruption" in result.stderr
    assert output.read_text(encoding="utf-8").count("\n") == 1


def test_only_one_process_writes_a_file(reverse: Path, input_file: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    unfinished(reverse, input_file, output)
    with wait_for_lock(OutputFile(output).lock):
        result = run_cli("translate", reverse, input_file, "--output", output)
    assert result.exit_code == 74
    assert "another process is writing this file" in result.stderr


@pytest.mark.parametrize(
    ("name", "exit_code", "message"),
    [
        (".", 78, "is a folder. Give the name of a file."),
        ("no/such/file", 66, "Create it with: mkdir -p "),
        ("input", 78, "is an input file. Choose another output file."),
    ],
)
def test_unusable_output_is_rejected(
    reverse: Path, input_file: Path, tmp_path: Path, name: str, exit_code: int, message: str
) -> None:
    result = run_cli("translate", reverse, input_file, "--output", tmp_path / name, "--overwrite")
    assert result.exit_code == exit_code
    assert message in result.stderr


def test_overwrite_requires_output(reverse: Path) -> None:
    result = run_cli("translate", reverse, "--overwrite")
    assert result.exit_code == 2
    assert "--overwrite requires --output" in result.error


def test_error_in_the_input_keeps_the_finished_portions(
    reverse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seqloom.jobs.batch_translation.portions.CPU_PORTION", 2)
    (tmp_path / "input").write_bytes(b"ab\ncd\nab\n\xff\n")
    result = run_cli("translate", reverse, tmp_path / "input", "--output", tmp_path / "out")
    assert result.exit_code == 65
    files = OutputFile(tmp_path / "out")
    assert len(files.partial.read_bytes().splitlines()) == 2
    assert json.loads(files.record.read_bytes())["lines"] == 2


def test_another_glossary_does_not_continue_the_output(
    reverse: Path, input_file: Path, tmp_path: Path
) -> None:
    glossary, output = tmp_path / "terms.tsv", tmp_path / "out"
    glossary.write_text("ab\ta\n", encoding="utf-8")
    unfinished(reverse, input_file, output, "--glossary", str(glossary))
    glossary.write_text("ab\tb\n", encoding="utf-8")
    result = run_cli("translate", reverse, input_file, "--output", output, "--glossary", glossary)
    assert result.exit_code != 0
    assert "glossary" in result.stderr
