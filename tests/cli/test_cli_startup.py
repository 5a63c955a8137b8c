"""Help and errors that need no torch do not import it; broken pipes; python -m seqloom."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.source_folder import SOURCE

pytestmark = pytest.mark.slow

PROGRAM = """
import sys
from seqloom.cli.main import run
try:
    run()
finally:
    print("heavy:", *sorted({"torch", "numpy", "sacrebleu"} & set(sys.modules)))
"""

RUN_FORKED = """
import json, os, sys, traceback
from seqloom.cli.main import run
[folder, *commands] = sys.argv[1:]
os.chdir(folder)
for number, command in enumerate(commands):
    pid = os.fork()
    if pid == 0:
        for descriptor, name in enumerate(("stdout", "stderr"), 1):
            os.dup2(os.open(f"{number}.{name}", os.O_WRONLY | os.O_CREAT), descriptor)
        os.chdir("work")
        sys.argv = ["seqloom", *command.split()]
        code = 1
        try:
            run()
        except SystemExit as exit:
            code = exit.code or 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            with open(f"../{number}.json", "w") as file:
                json.dump([code, sorted(sys.modules)], file)
            os._exit(0)
    os.waitpid(pid, 0)
"""
"""Runs each command in a forked process, which has imported only the command line."""


def run_process(
    *arguments: str, folder: Path, program: str = PROGRAM
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


COMMANDS = {
    "--help": 0,
    "--version": 0,
    "config -h": 0,
    "train --help": 0,
    "translate -h": 0,
    "config good.toml": 0,
    "runs .": 0,
    "runs missing": 66,
    "new missing.tsv": 66,
    "translate . --device gpu": 2,
    "train wrong.toml": 78,
    "doctor wrong.toml": 78,
    "config wrong.toml": 78,
    "train good.toml --set a=1": 78,
    "train missing.toml": 66,
    "train good.toml --run taken": 78,
    "translate missing": 66,
    "evaluate missing": 66,
    "score missing a b": 66,
    "complete good.toml": 66,
    "serve --help": 0,
    "serve missing": 66,
    "explain missing text": 66,
    "explain": 2,
    "gradients missing text": 66,
    "translate . --beam 0": 2,
    "nonsense": 2,
    "train": 2,
}
"""Commands that need no torch, and their exit codes."""


@dataclass(frozen=True)
class Outcome:
    """The result of a command, and the names of the modules that are imported at its end."""

    exit_code: int
    modules: frozenset[str]
    output: str
    error: str


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Outcome]:
    """The outcome of each command in `COMMANDS`."""
    folder = tmp_path_factory.mktemp("outcomes")
    work = folder / "work"
    (work / "taken").mkdir(parents=True)
    (work / "taken" / "config.toml").touch()
    (work / "wrong.toml").write_text("[trainin]\nsteps = 5\n", encoding="utf-8")
    recipe = Path(__file__).parents[1] / "config" / "bundled-recipe.toml"
    (work / "good.toml").write_bytes(recipe.read_bytes())
    process = run_process(str(folder), *COMMANDS, folder=folder, program=RUN_FORKED)
    assert process.returncode == 0, process.stderr

    def read(number: int) -> Outcome:
        code, modules = json.loads((folder / f"{number}.json").read_bytes())
        output, error = (
            (folder / f"{number}.{name}").read_text(encoding="utf-8")
            for name in ("stdout", "stderr")
        )
        return Outcome(code, frozenset(modules), output, error)

    return {command: read(number) for number, command in enumerate(COMMANDS)}


@pytest.mark.parametrize(("arguments", "exit_code"), COMMANDS.items())
def test_torch_is_not_imported(
    arguments: str, exit_code: int, outcomes: Mapping[str, Outcome]
) -> None:
    outcome = outcomes[arguments]
    assert not {"torch", "numpy", "sacrebleu"} & outcome.modules
    assert outcome.exit_code == exit_code, outcome.output + outcome.error
    assert "Traceback" not in outcome.error
    assert outcome.output or outcome.error


@pytest.mark.parametrize(
    ("reader", "exit_code", "message"),
    [
        ("{ cat > /dev/null; }", 0, ""),
        ("true", 141, ""),
        (
            "> /dev/full",
            74,
            "error: standard output: writing failed: No space left on device. The output is "
            "incomplete. Free some space or write to another file, then run the command again.\n",
        ),
    ],
)
def test_failed_write_to_stdout_gives_an_exit_code(
    tmp_path: Path, reader: str, exit_code: int, message: str
) -> None:
    recipe = Path(__file__).parents[1] / "config" / "bundled-recipe.toml"
    command = (
        f'sleep 0.3; "{sys.executable}" -c "from seqloom.cli.main import run; run()" '
        f'config "{recipe}"'
    )
    target = reader if reader.startswith(">") else ""
    pipe = "" if target else f"| {reader}"
    script = f"{{ {command} {target}; echo $? > code; }} {pipe}"
    process = subprocess.run(
        ["sh", "-c", script],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert process.stderr == message
    assert (tmp_path / "code").read_text(encoding="utf-8") == f"{exit_code}\n"


@pytest.mark.parametrize("arguments", ["--help", "--version", "train --help", "config -h"])
def test_help_and_version_do_not_import_the_recipe_schema(
    arguments: str, outcomes: Mapping[str, Outcome]
) -> None:
    assert "seqloom.config.schema.recipe" not in outcomes[arguments].modules


@pytest.mark.parametrize(("arguments", "exit_code"), [("--version", 0), ("translate missing", 66)])
def test_python_can_run_the_package(arguments: str, exit_code: int, tmp_path: Path) -> None:
    program = "import runpy; runpy.run_module('seqloom', run_name='__main__')"
    module = run_process(*arguments.split(), folder=tmp_path, program=program)
    script = run_process(*arguments.split(), folder=tmp_path)
    assert module.returncode == script.returncode == exit_code
    assert module.stdout == script.stdout.replace("heavy:\n", "")
    assert module.stderr == script.stderr


TRANSLATE_AND_TRAIN = """
import sys
from seqloom.cli.main import run
try:
    run()
finally:
    import torch
    from seqloom.config.schema.training import AdamWConfig
    from seqloom.training.optimizer import build_optimizer
    model = torch.nn.Linear(2, 2)
    optimizer = build_optimizer(AdamWConfig(learning_rate=0.1), model)
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    print("heavy:", *sorted({"sacrebleu", "lxml", "torch._dynamo"} & set(sys.modules)))
"""


def test_translating_and_updating_weights_import_neither_metrics_nor_the_compiler(
    reverse: Path, tmp_path: Path
) -> None:
    (tmp_path / "input").write_text("ab\n", encoding="utf-8")
    process = run_process(
        "translate", str(reverse), "input", folder=tmp_path, program=TRANSLATE_AND_TRAIN
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines()[1:] == ["heavy:"]
