"""Start-up time of the commands: `--help` and recipes with an error."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

COMMANDS = ("demo", "train", "translate", "complete", "evaluate", "score", "doctor", "config")
ROUNDS = 7


def measure(folder: Path) -> dict[str, Any]:
    invalid = folder / "wrong.toml"
    invalid.write_text("[training]\nstep = 3\n", encoding="utf-8")
    seqloom = [sys.executable, "-c", "from seqloom.cli.main import run; run()"]
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "--version": [*seqloom, "--version"],
        "--help": [*seqloom, "--help"],
        **{f"{command} --help": [*seqloom, command, "--help"] for command in COMMANDS},
        "train wrong.toml": [*seqloom, "train", str(invalid)],
        "doctor wrong.toml": [*seqloom, "doctor", str(invalid)],
    }
    # Alternate between the commands, so that other load on the machine affects all of them.
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, capture_output=True, check=False)
            seconds[name].append(time.perf_counter() - start)
    return {name: sorted(times) for name, times in seconds.items()}
