"""Warnings of the command line about unknown input, and splitting of lines."""

from pathlib import Path

import pytest

from seqloom.inference.run import Run, load
from support.cli_runner import run_cli
from support.sentence_runs import SENTENCES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(sentence_run: Path) -> Run:
    return load(sentence_run)


def test_a_line_of_several_sentences_is_translated_completely(sentence_run: Path, run: Run) -> None:
    line = " ".join(SENTENCES)
    result = run_cli("translate", sentence_run, stdin=f"{line}\n".encode())
    expected = " ".join(each.text for each in run.translate(SENTENCES))
    assert (result.stdout, result.stderr) == (f"{expected}\n", "")
    unsplit = run_cli("translate", sentence_run, "--no-split", stdin=f"{line}\n".encode())
    assert unsplit.stdout != result.stdout


def test_one_warning_lists_the_lines_with_unknown_characters(sentence_run: Path) -> None:
    result = run_cli("translate", sentence_run, stdin="Dog runs.\n😀😀\nDog ß runs. 😀\n".encode())
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[1] == "😀😀"
    assert lines[2].endswith(" 😀")
    [warning] = [line for line in result.stderr.splitlines() if "vocabulary" in line]
    assert warning.startswith(
        "warning: 2 of 3 lines contain characters that the vocabulary does not know (lines 2, 3): "
        "😀 ß. "
    )


def test_inserted_parts_are_reported_and_can_be_turned_off(sentence_run: Path) -> None:
    line = "Dog runs 😀 here big.\n".encode()
    assert "position" in run_cli("translate", sentence_run, stdin=line).stderr
    plain = run_cli("translate", sentence_run, "--no-pass-through", stdin=line)
    assert "position" not in plain.stderr
    assert "😀" not in plain.stdout


def test_scores_report_unknown_sources(sentence_run: Path, tmp_path: Path) -> None:
    (tmp_path / "source").write_text("Dog ß runs.\nDog runs.\n", encoding="utf-8")
    (tmp_path / "target").write_text("Hund.\nHund.\n", encoding="utf-8")
    result = run_cli("score", sentence_run, tmp_path / "source", tmp_path / "target")
    assert "1 of 2 lines contains characters" in result.error
