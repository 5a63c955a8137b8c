"""What a measurement has beside it: machine, versions, seed, command, date."""

import os
import platform
import shlex
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


def processor() -> str:
    """The processor's own name, its cores, and the memory beside it."""
    name = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        name = lines[0].split(":", 1)[1].strip() if lines else name
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return f"{name}, {os.cpu_count()} cores, {memory:.0f} GB"
