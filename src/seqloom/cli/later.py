"""Work that needs torch, imported only when it is about to begin.

Importing torch takes seconds. Help, versions, mistyped options and wrong recipes are answered
without it, so the modules of `seqloom.cli.work` are named here and imported by name.
"""

import importlib
from collections.abc import Callable
from typing import Any, Literal

Job = Literal["train", "translate", "complete", "evaluate", "score", "doctor", "demo"]


def work(job: Job) -> Callable[..., Any]:
    """The function that does the work of a command: seqloom.cli.work.<job>.<job>."""
    module = importlib.import_module(f"seqloom.cli.work.{job}")
    function: Callable[..., Any] = getattr(module, job)
    return function
