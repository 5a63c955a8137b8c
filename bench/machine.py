"""What a measurement has beside it: machine, versions, seed, command, date."""

import os
import platform
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def about(seed: int) -> dict[str, Any]:
    import torch

    return {
        "machine": processor(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "seed": seed,
        "command": shlex.join(["python", "-m", "bench", *sys.argv[1:]]),
        "date": time.strftime("%Y-%m-%d"),
    }


def _by_lscpu() -> str:
    """The name of a processor that /proc does not tell, as on ARM; blank if nobody knows it."""
    if shutil.which("lscpu") is None:
        return ""
    told = subprocess.run(["lscpu"], capture_output=True, text=True, check=False).stdout
    lines = [line for line in told.splitlines() if line.startswith("Model name:")]
    return lines[0].split(":", 1)[1].strip() if lines else ""


def processor() -> str:
    """The processor's own name, its cores, and the memory beside it."""
    name = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        name = lines[0].split(":", 1)[1].strip() if lines else _by_lscpu() or name
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return f"{name}, {os.cpu_count()} cores, {memory:.0f} GB"
