"""Start-up time of the commands: `--help`, recipes with an error, one translation, one training step.

Times are processor seconds of the command, which depend less on other load than elapsed time.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.study import RECIPES

COMMANDS = ("demo", "train", "translate", "complete", "evaluate", "score", "doctor", "config")
ROUNDS = 3
IMPORT_TORCH = "python -c 'import torch'"


def measure(folder: Path) -> dict[str, Any]:
    invalid, recipe, text = folder / "wrong.toml", RECIPES / "startup.toml", folder / "line.txt"
    invalid.write_text("[training]\nstep = 3\n", encoding="utf-8")
    text.write_text("ab\n", encoding="utf-8")
    seqloom = [sys.executable, "-c", "from seqloom.cli.main import run; run()"]
    run = folder / "tiny"
    subprocess.run([*seqloom, "train", str(recipe), "--run", str(run)], check=True)
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        IMPORT_TORCH: [sys.executable, "-c", "import torch"],
        "--version": [*seqloom, "--version"],
        "--help": [*seqloom, "--help"],
        **{f"{command} --help": [*seqloom, command, "--help"] for command in COMMANDS},
        "train wrong.toml": [*seqloom, "train", str(invalid)],
        "doctor wrong.toml": [*seqloom, "doctor", str(invalid)],
        "translate, one line": [*seqloom, "translate", str(run), str(text)],
        "train, one step": [*seqloom, "train", str(recipe), "--run"],
    }
    # Alternate between the commands, so that other load on the machine affects all of them.
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(ROUNDS):
        for name, command in commands.items():
            new_run = [str(folder / f"run-{number}")] if command[-1] == "--run" else []
            seconds[name].append(processor_seconds([*command, *new_run]))
    return {name: sorted(times) for name, times in seconds.items()}


def processor_seconds(command: list[str]) -> float:
    """Run a command. Returns its user and system time."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0  # already waited for
    return usage.ru_utime + usage.ru_stime
