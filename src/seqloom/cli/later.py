"""What takes long to import, imported only when it is about to be used.

Importing torch takes seconds. Help, versions, mistyped options and wrong recipes are answered
without it, so the modules of `seqloom.cli.work` are named here and imported by name. The schema
of recipes takes a quarter of a second: help and versions are answered without it, too.
"""

import importlib
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from seqloom.cli.output import warn

if TYPE_CHECKING:
    from seqloom.config.loading.loader import ResolvedRecipe

Job = Literal[
    "train",
    "translate",
    "complete",
    "caption",
    "forecast",
    "label",
    "evaluate",
    "score",
    "serve",
    "doctor",
    "demo",
    "lab",
    "lab_run",
    "inspect",
    "align",
    "search",
    "slips",
    "compare",
    "explain",
    "gradients",
]


def resolved_recipe(name: str, settings: Sequence[str] | None) -> "ResolvedRecipe":
    """The recipe of this name or file, changed by --set; what is odd about it is told."""
    from seqloom.config.loading.loader import load_recipe

    resolved = load_recipe(name, settings or ())
    for note in resolved.notes:
        warn(note)
    return resolved


def work(job: Job) -> Callable[..., Any]:
    """The function that does the work of a command: seqloom.cli.work.<job>.<job>."""
    # Threads that wait by spinning keep their core from whoever else needs it, on a shared machine
    # from each other: several times slower there, no faster elsewhere. Read when torch is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    module = importlib.import_module(f"seqloom.cli.work.{job}")
    function: Callable[..., Any] = getattr(module, job)
    return function
