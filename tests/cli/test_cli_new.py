"""seqloom new writes a recipe that trains."""

import sys
from pathlib import Path

import pytest

from support.cli_runner import run_cli

pytestmark = pytest.mark.slow


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [f"{a}{b}{a}\t{b}{a}{b}" for a in "abcdefghijklmnop" for b in "abcdefghijklmnop"]
    Path("pairs.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Path("pairs.tsv")


def test_the_recipe_can_be_checked_and_trained_with_the_printed_commands(pairs: Path) -> None:
    written = run_cli("new", pairs, "--recipe", "r.toml", "--source", "de", "--target", "en")
    assert written.exit_code == 0
    assert "r.toml: 256 pairs (tsv), preset 'low-resource'; next:" in written.stderr
    commands = [line.split()[1:] for line in written.stderr.splitlines() if line.startswith("  ")]
    assert commands == [["doctor", "r.toml"], ["train", "r.toml", "--run", "runs/r"]]
    assert run_cli(*commands[0]).exit_code == 0
    small = [
        f"model.{side}={{kind='transformer',width=8,layers=1,feedforward=8,attention={{heads=1}}}}"
        for side in ("encoder", "decoder")
    ]
    settings = (f"--set={each}" for each in (*small, "training.steps=2"))
    trained = run_cli(*commands[1], *settings)
    assert trained.exit_code == 0, trained.stderr
    listed = run_cli("runs")
    assert "runs/r  translation  tsv pairs.tsv de-en  2/2" in listed.stdout


def test_an_existing_recipe_is_not_replaced(pairs: Path) -> None:
    Path("pairs.toml").write_text("mine", encoding="utf-8")
    result = run_cli("new", pairs)
    assert result.exit_code == 78
    assert "pairs.toml: already exists. Choose another name with --recipe." in result.error
    assert Path("pairs.toml").read_text(encoding="utf-8") == "mine"


def test_usage_errors_say_what_to_give(pairs: Path) -> None:
    one_language = run_cli("new", pairs, "--source", "de")
    assert one_language.exit_code == 2
    assert "Give both --source and --target" in one_language.error
    no_file = run_cli("new")
    assert no_file.exit_code == 2
    assert "Give a file of pairs, or two files: sources and targets." in no_file.error


def test_a_terminal_is_asked_for_what_is_missing(
    pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {
        "File of pairs, or two parallel files": str(pairs),
        "Source language (may be empty)": "de",
        "Target language (may be empty)": "en",
        "Recipe to write": "asked.toml",
    }
    monkeypatch.setattr("typer.prompt", lambda question, **_: answers.pop(question))
    from seqloom.cli.commands.new import new

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    new()
    assert not answers
    assert 'name = "de-en"' in Path("asked.toml").read_text(encoding="utf-8")
