"""Facts stored with a measurement: machine, versions, commit and date."""

import os
import platform
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from bench.store import ROOT


def describe_environment() -> dict[str, Any]:
    """What is stored with the results of a program: the GPU or the processor, versions and date."""
    import torch

    return {
        "machine": accelerator_name() if torch.cuda.is_available() else describe_processor(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "date": time.strftime("%Y-%m-%d"),
    }


def accelerator_name() -> str:
    """The name of the GPU, or the architecture of the CPU if there is no GPU."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine()


def describe_processor() -> str:
    """The name of the processor, its cores and the memory of the machine."""
    name = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        name = lines[0].split(":", 1)[1].strip() if lines else _lscpu_name() or name
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return f"{name}, {os.cpu_count()} cores, {memory:.0f} GB"


def _lscpu_name() -> str:
    """The processor name from lscpu, for ARM, where /proc/cpuinfo has none. Empty if unknown."""
    if shutil.which("lscpu") is None:
        return ""
    output = subprocess.run(["lscpu"], capture_output=True, text=True, check=False).stdout
    lines = [line for line in output.splitlines() if line.startswith("Model name:")]
    return lines[0].split(":", 1)[1].strip() if lines else ""


def describe_measurement() -> dict[str, str]:
    """Version, commit, machine and date that results belong to."""
    import torch

    import seqloom

    return {
        "version": seqloom.__version__,
        "commit": describe_commit(),
        "machine": describe_processor(),
        "torch": torch.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }


def describe_commit() -> str:
    """The commit of the source, with a plus sign if files of src or tests differ from it."""
    commit = _git("rev-parse", "--short=8", "HEAD")
    return commit + ("+" if _git("status", "--porcelain", "--", "src", "tests") else "")


def _git(*arguments: str) -> str:
    result = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return result.stdout.strip()
