"""The machine that measures. Measured times are valid only for the machine they come from."""

import os
import platform
from pathlib import Path

import torch


def describe_machine() -> str:
    """Return the processor, its cores, the threads that torch uses, and the GPU if there is one."""
    threads = torch.get_num_threads()
    parts = [
        _processor_name(),
        f"{os.cpu_count()} cores",
        f"{threads} thread{'' if threads == 1 else 's'}",
    ]
    if torch.cuda.is_available():
        parts.append(torch.cuda.get_device_name())
    return ", ".join(parts)


def _processor_name() -> str:
    """Return the name of the processor; its architecture if the system does not know the name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
