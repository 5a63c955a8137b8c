"""Work that needs torch, imported only when it is about to begin.

Importing torch takes seconds. Help, versions, mistyped options and wrong recipes are answered
without it, so the modules of `seqloom.cli.work` are named here and imported by name.
"""

import importlib
import os
from collections.abc import Callable
from typing import Any, Literal

Job = Literal["train", "translate", "complete", "evaluate", "score", "doctor", "demo"]


def work(job: Job) -> Callable[..., Any]:
    """The function that does the work of a command: seqloom.cli.work.<job>.<job>."""
    # Threads that wait by spinning keep their core from whoever else needs it, on a shared machine
    # from each other: several times slower there, no faster elsewhere. Read when torch is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    module = importlib.import_module(f"seqloom.cli.work.{job}")
    function: Callable[..., Any] = getattr(module, job)
    return function
