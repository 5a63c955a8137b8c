"""Describes the machine on which an experiment runs, because measured times depend on it."""

import os
import platform
from pathlib import Path

import torch


def describe_machine() -> str:
    """Describe processor, cores, torch threads and, if there is one, the GPU in a line of text."""
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
    """Return the model name of the processor.

    On ARM, Linux does not give a model name. There, the result is the architecture and the numeric
    codes of the manufacturer and of the processor. Outside Linux it is only the architecture.
    """
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    pairs = (line.partition(":") for line in text.splitlines())
    fields = {name.strip(): value.strip() for name, _, value in pairs}
    codes = [fields[name] for name in ("CPU implementer", "CPU part") if name in fields]
    return fields.get("model name") or " ".join([platform.machine(), *codes])
