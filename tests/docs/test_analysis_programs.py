"""The commands and programs in docs/analysis and docs/engines.md run, on a small model."""

import re
import shutil
from pathlib import Path

import pytest
from test_readme import ROOT, SMALL, run_command, run_program

pytestmark = pytest.mark.slow

PAGES = [*sorted((ROOT / "docs" / "analysis").glob("*.md")), ROOT / "docs" / "engines.md"]
LONG = ("seqloom train", "seqloom serve", "pip ", "python tools")
"""Commands that are not run here: training and serving have tests of their own."""


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.M | re.S)


def commands(page: Path) -> list[str]:
    """The seqloom commands of a page's shell blocks, without comments and continued lines."""
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    stripped = [line.split("  #")[0].strip() for line in lines]
    return [line for line in stripped if line.startswith("seqloom ") and not line.startswith(LONG)]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs and files that the pages mention."""
    folder = tmp_path_factory.mktemp("analysis")
    settings = " ".join(f"--set {setting}" for setting in SMALL)
    run_command(f"seqloom demo {settings}", folder)
    search = 'search runs/demo "Kannst du mir helfen?" --beam 4 --out search.json'
    run_command(f"seqloom {search}", folder)
    for name in ("plain", "first"):
        shutil.copytree(folder / "runs" / "demo", folder / "runs" / name)
    source, target = "Das gefällt mir .\nWo ist er ?\n", "I like it .\nWhere is he ?\n"
    for name in ("test", "dev"):
        (folder / f"{name}.de").write_text(source, encoding="utf-8")
        (folder / f"{name}.en").write_text(target, encoding="utf-8")
        (folder / f"{name}.align").write_text("0-2 1-1\n0-0 1-1\n", encoding="utf-8")
    (folder / "text.de").write_text(source, encoding="utf-8")
    (folder / "sentences.txt").write_text(source, encoding="utf-8")
    (folder / "pairs.tsv").write_text("Das gefällt mir .\tI like it .\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "command",
    [
        command
        for page in PAGES
        for command in commands(page)
        if "--engine ctranslate2" not in command  # the small model is recurrent
    ],
)
def test_command_runs(workspace: Path, command: str) -> None:
    run_command(command, workspace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_programs_run(workspace: Path, page: Path) -> None:
    for program in blocks(page, "python"):
        complete = program.replace('engine="ctranslate2"', 'engine="auto"')
        run_program(f"import seqloom\n{complete}", workspace)
