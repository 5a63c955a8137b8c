"""Every program in the README does what it says, on a small model."""

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SMALL = [
    "training.steps=4",
    "training.schedule.warmup=1",
    "decoding.max_length=6",
    "training.evaluate_every=4",
    "training.evaluate_examples=4",
    "model.encoder.width=16",
    "model.decoder.width=16",
]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.M | re.S)


def commands() -> list[str]:
    """Every seqloom command of the README's shell blocks, without its comment."""
    lines = [line.split("  #")[0].strip() for block in blocks("sh") for line in block.splitlines()]
    return [line for line in lines if "seqloom " in line and not line.startswith("pip ")]


def shell(command: str, folder: Path) -> str:
    """Run a command line with this checkout's seqloom first on the path."""
    binaries = folder / "bin"
    binaries.mkdir(exist_ok=True)
    program = binaries / "seqloom"
    program.write_text(
        f"#!{sys.executable}\nfrom seqloom.cli.main import run\nrun()\n", encoding="utf-8"
    )
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the demo has run, made small, and a user's own pairs lie."""
    folder = tmp_path_factory.mktemp("readme")
    words = ["".join(letters) for letters in itertools.product("bdkl", "aeio", "mnrt", "a")]
    pairs = [f"{one} {other}\t{other} {one}" for one, other in itertools.pairwise(words * 5)]
    (folder / "pairs.tsv").write_text("\n".join(pairs) + "\n", encoding="utf-8")
    (folder / "pairs.txt").write_text("bama dena\nkira loma\n", encoding="utf-8")
    (recipe,) = blocks("toml")
    recipe = recipe.replace("steps = 4000", "steps = 4").replace("size = 400", "size = 60")
    (folder / "mine.toml").write_text(recipe.replace("256", "16"), encoding="utf-8")
    settings = " ".join(f"--set {setting}" for setting in SMALL)
    shell(f"seqloom demo {settings}", folder)
    return folder


def test_every_command_runs(workplace: Path) -> None:
    assert len(commands()) >= 6
    for command in commands():
        if command == "seqloom demo":
            continue  # it made the folder
        shell(command, workplace)
    assert len((workplace / "out.txt").read_text(encoding="utf-8").splitlines()) == 2


def test_every_python_program_runs(workplace: Path) -> None:
    for program in blocks("python"):
        (workplace / "program.py").write_text(program, encoding="utf-8")
        assert shell(f"{sys.executable} program.py", workplace)


def test_the_table_of_commands_is_the_command_line(workplace: Path) -> None:
    listed = re.findall(r"^\| `seqloom (\w+)", README, flags=re.M)
    helped = re.findall(r"^[│ ]+(\w+) {2,}", shell("seqloom --help", workplace), flags=re.M)
    assert set(listed) == set(helped)


def test_every_link_into_the_repository_leads_somewhere() -> None:
    for page in (ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert target.startswith("http") or (page.parent / target).exists(), target


def test_every_folder_of_the_map_exists_and_is_on_it() -> None:
    shown = set(re.findall(r"^[├└]── (\w+)", README, flags=re.M))
    folders = {path.name for path in (ROOT / "src/seqloom").iterdir() if path.is_dir()}
    assert shown == folders - {"__pycache__", "bundled"}
