"""How long every command takes to answer when there is nothing to do."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

COMMANDS = ("demo", "train", "translate", "complete", "evaluate", "score", "doctor", "config")
GOES = 7


def measure(folder: Path) -> dict[str, Any]:
    wrong = folder / "wrong.toml"
    wrong.write_text("[training]\nstep = 3\n", encoding="utf-8")
    seqloom = [sys.executable, "-c", "from seqloom.cli.main import run; run()"]
    asked = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "--version": [*seqloom, "--version"],
        "--help": [*seqloom, "--help"],
        **{f"{command} --help": [*seqloom, command, "--help"] for command in COMMANDS},
        "train wrong.toml": [*seqloom, "train", str(wrong)],
        "doctor wrong.toml": [*seqloom, "doctor", str(wrong)],
    }
    # All of them in turn, again and again: a busy moment touches one go of each.
    taken: dict[str, list[float]] = {name: [] for name in asked}
    for _ in range(GOES):
        for name, command in asked.items():
            began = time.perf_counter()
            subprocess.run(command, capture_output=True, check=False)
            taken[name].append(time.perf_counter() - began)
    return {name: sorted(times) for name, times in taken.items()}
