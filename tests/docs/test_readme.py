"""The commands and programs in the README run, on a small model, and its links exist."""

import io
import itertools
import os
import re
import runpy
import shlex
import subprocess
import sys
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import seqloom
from cli_runner import run_cli

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


def code_blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.M | re.S)


def readme_commands() -> list[str]:
    """The seqloom commands in the shell blocks of the README, without comments."""
    lines = [
        line.split("  #")[0].strip() for block in code_blocks("sh") for line in block.splitlines()
    ]
    return [line for line in lines if "seqloom " in line and not line.startswith("pip ")]


def run_shell(command: str, folder: Path) -> str:
    """Run a command with the seqloom of this checkout and return its output."""
    binaries = folder / "bin"
    binaries.mkdir(exist_ok=True)
    program = binaries / "seqloom"
    program.write_text(
        f"#!{sys.executable}\nfrom seqloom.cli.process.entry import run\nrun()\n", encoding="utf-8"
    )
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "OMP_NUM_THREADS": "1",
    }
    completed = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert completed.returncode == 0, f"{command}\n{completed.stderr}"
    return completed.stdout


def run_command(command: str, folder: Path) -> str:
    """Run a command of a page and return its output. A seqloom command without shell syntax runs in
    this process, because most of the time of a new process would be imports."""
    if not command.startswith("seqloom ") or any(character in command for character in "|<>$&;"):
        return run_shell(command, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = run_cli(*shlex.split(command, comments=True)[1:])
    assert result.exit_code == 0, f"{command}\n{result.stderr}"
    return result.stdout


def run_program(program: str, folder: Path) -> str:
    """Run a Python program of a page in this process and return its output."""
    # Modules that other tests have imported must not hide a missing import of the program.
    for name in re.findall(r"(?<!from )(?<!import )\bseqloom\.(\w+)", program):
        assert name in seqloom.__all__, f"import seqloom does not provide seqloom.{name}"
    path, output = folder / "program.py", io.StringIO()
    path.write_text(program, encoding="utf-8")
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(output),
        warnings.catch_warnings(),
    ):
        patch.chdir(folder)
        warnings.simplefilter("ignore", ResourceWarning)  # as in a new process
        runpy.run_path(str(path), run_name="__main__")
    return output.getvalue()


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small demo run and the files that the README uses."""
    folder = tmp_path_factory.mktemp("readme")
    words = ["".join(letters) for letters in itertools.product("bdkl", "aeio", "mnrt", "a")]
    pairs = [
        f"{first} {second}\t{second} {first}" for first, second in itertools.pairwise(words * 5)
    ]
    (folder / "pairs.tsv").write_text("\n".join(pairs) + "\n", encoding="utf-8")
    (folder / "source.txt").write_text("bama dena\nkira loma\n", encoding="utf-8")
    (recipe,) = code_blocks("toml")
    small = "model = { encoder = { width = 16 }, decoder = { width = 16 } }\n"
    short = "training = { steps = 4 }\n"
    recipe = recipe.replace("\n[data]", f"{small}{short}\n[data]")
    (folder / "mine.toml").write_text(recipe, encoding="utf-8")
    settings = " ".join(f"--set {setting}" for setting in SMALL)
    run_command(f"seqloom demo {settings}", folder)
    return folder


@pytest.mark.slow
def test_every_command_runs(workspace: Path) -> None:
    assert len(readme_commands()) >= 6
    for command in readme_commands():
        if command == "seqloom demo":
            continue  # the fixture ran it
        run_command(command, workspace)
    assert len((workspace / "out.txt").read_text(encoding="utf-8").splitlines()) == 2


@pytest.mark.slow
def test_every_python_program_runs(workspace: Path) -> None:
    for program in code_blocks("python"):
        assert run_program(program, workspace)


@pytest.mark.slow
def test_the_table_of_commands_lists_all_commands(workspace: Path) -> None:
    in_table = re.findall(r"^\| `seqloom ([\w-]+)", README, flags=re.M)
    in_help = re.findall(
        r"^[│ ]+(\w[\w-]*) {2,}", run_command("seqloom --help", workspace), flags=re.M
    )
    assert set(in_table) == set(in_help)


def test_links_into_the_repository_exist() -> None:
    for page in (ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert target.startswith("http") or (page.parent / target).exists(), target


def test_the_map_lists_all_packages() -> None:
    shown = set(re.findall(r"^[├└]── (\w+)", README, flags=re.M))
    folders = {path.name for path in (ROOT / "src/seqloom").iterdir() if path.is_dir()}
    assert shown == folders - {"__pycache__", "bundled"}
