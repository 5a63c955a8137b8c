"""Runs the commands and programs of pages in a folder, on small models."""

import io
import os
import re
import runpy
import shlex
import subprocess
import sys
import warnings
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from page_blocks import CodeBlock, shell_commands

import seqloom
from support.cli_runner import run_cli
from support.server_process import start_server
from tools.site.links import ROOT

SHORT = (
    "training.steps=4",
    "training.evaluate_every=4",
    "training.checkpoint_every=4",
    "training.evaluate_examples=4",
)
"""Settings that shorten every training."""
NARROW = ("model.encoder.width=16", "model.decoder.width=16")
NARROW_TRANSLATION = (*NARROW, "training.schedule.warmup=1", "decoding.max_length=6")
SMALL_MODELS = {
    "demo": NARROW_TRANSLATION,
    "mine.toml": NARROW_TRANSLATION,
    "case-attention": NARROW_TRANSLATION,
    "cmudict-g2p": NARROW_TRANSLATION,
    "book.toml": ("model.decoder.width=16",),
    "tatoeba-english": ("model.decoder.width=16",),
    "captions.toml": (*NARROW, "model.encoder.channels=[8,8,8]"),
}
"""Settings that make the model of a recipe small. The models of other recipes are small."""
INSTALLS = ("pip install ", "make ", ".venv/bin/hatchling build")
"""Commands that install or test seqloom itself. tests/packaging builds and installs it."""
SERVER = re.compile(r"(127\.0\.0\.1|localhost):8000")


def set_options(*settings: str) -> str:
    return "".join(f" --set {setting}" for setting in settings)


def shorten(command: str) -> str:
    """The command with a short training of a small model, if it trains."""
    command = re.sub(r"(training\.(?:steps|\w+_every))=\d+", r"\1=4", command)
    command = re.sub(r"examples=\d+", "examples=40", command)
    trains = re.match(r"seqloom (demo|train|sweep)(?: (\S+))?(?!.*--resume)", command)
    if not trains:
        return command
    small = () if "--from" in command else SMALL_MODELS.get(trains[2] or trains[1], ())
    return command + set_options(*SHORT, *small)


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
        "PATH": f"{binaries}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        "OMP_NUM_THREADS": "1",
        "SLURM_ARRAY_TASK_ID": "1",
    }
    completed = subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert completed.returncode == 0, f"{command}\n{completed.stderr}"
    return completed.stdout


def run_command(command: str, folder: Path) -> str:
    """Run a command of a page and return its output.

    A seqloom command runs in this process, because most of the time of a new process would be
    imports. Its input may come from `echo` or a file.
    """
    echo = re.fullmatch(r"echo (?P<text>'[^']*'|\"[^\"]*\"|\w+) \| (?P<rest>.*)", command)
    redirected = re.fullmatch(r"(?P<rest>.*) < (?P<file>\S+)", command)
    stdin, rest = b"", command
    if echo:
        stdin, rest = f"{shlex.split(echo['text'])[0]}\n".encode(), echo["rest"]
    elif redirected:
        stdin, rest = (folder / redirected["file"]).read_bytes(), redirected["rest"]
    arguments = shlex.split(rest)
    if arguments[0] != "seqloom" or re.search(
        r"[|<>$&;]", re.sub(r"'[^']*'|\"[^\"$]*\"", "", rest)
    ):
        return run_shell(command, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = run_cli(*arguments[1:], stdin=stdin)
    assert result.exit_code == 0, f"{command}\n{result.stderr}"
    return result.stdout


def run_program(program: str, folder: Path, names: dict[str, Any] | None = None) -> str:
    """Run a Python program of a page in this process and return its output.

    names: variables of the programs before it on the page. The variables of this program are added
    """
    # Modules that other tests have imported must not hide a missing import of the program.
    for name in re.findall(r"(?<!from )(?<!import )\bseqloom\.(\w+)", program):
        assert name in seqloom.__all__, f"import seqloom does not provide seqloom.{name}"
    path, output = folder / "program.py", io.StringIO()
    path.write_text(program, encoding="utf-8")
    variables = names if names is not None else {}
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(output),
        warnings.catch_warnings(),
    ):
        patch.chdir(folder)
        warnings.simplefilter("ignore", ResourceWarning)  # as in a new process
        after = runpy.run_path(str(path), init_globals=variables, run_name="__main__")
    variables |= {name: value for name, value in after.items() if not name.startswith("__")}
    return output.getvalue()


@dataclass
class PageRunner:
    """Runs the blocks of one page from the first to the last.

    address: host and port of the server to which the clients on the page send their requests
    """

    folder: Path
    address: str = ""
    variables: dict[str, Any] = field(default_factory=dict)

    def run(self, block: CodeBlock) -> None:
        match block.language:
            case "sh":
                for command in shell_commands(block):
                    self._run_command(command)
            case "python":
                run_program(SERVER.sub(self.address, block.code), self.folder, self.variables)
            case "toml":
                self._write_recipe(block.code)
            case _:
                pass

    def _run_command(self, command: str) -> None:
        command = re.sub(r"\bRUN\b", "runs/demo", re.sub(r"\bRECIPE\b", "recipe.toml", command))
        if command.startswith(INSTALLS) or command == "seqloom demo":
            return  # the folder has a demo run
        if command.startswith("seqloom serve "):
            self._serve(shlex.split(command)[2:])
        else:
            run_command(shorten(SERVER.sub(self.address, command)), self.folder)

    def _serve(self, arguments: list[str]) -> None:
        """Start a server as the page does, and stop it."""
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            assert start_server((), *arguments).stop() == 0

    def _write_recipe(self, code: str) -> None:
        """Write a recipe whose first line is a comment with its file name."""
        if name := re.match(r"# (\S+\.toml)\n", code):
            (self.folder / name[1]).write_text(code, encoding="utf-8")
