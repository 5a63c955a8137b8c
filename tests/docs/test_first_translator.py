"""The commands and the program of the tutorial docs/first-translator.md run, on a small model."""

import sys
from pathlib import Path

import pytest
from test_code_blocks import blocks
from test_readme import ROOT, SMALL, run_shell

pytestmark = pytest.mark.long

PAGE = ROOT / "docs" / "first-translator.md"


def test_the_tutorial_runs_from_the_first_to_the_last_command(tmp_path: Path) -> None:
    pairs = [f"{a} {b}\t{b} {a}\n" for a in ("ab", "ba", "aa", "bb") for b in "cdefghijklmnop"]
    (tmp_path / "pairs.tsv").write_text("".join(pairs * 4), encoding="utf-8")
    small = "".join(f" --set {setting}" for setting in SMALL)
    short = " --set training.steps=4 --set training.evaluate_every=4"
    commands = [line for block in blocks(PAGE, "sh") for line in block.splitlines()]
    assert len(commands) == 12
    for command in commands:
        if command.startswith("pip "):
            continue  # seqloom is installed
        changes = {"seqloom demo": small, "seqloom train mine.toml --run runs/mine": short}
        run_shell(command + changes.get(command, ""), tmp_path)
    [program] = blocks(PAGE, "python")
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    assert len(run_shell(f"{sys.executable} program.py", tmp_path).splitlines()) == 2
