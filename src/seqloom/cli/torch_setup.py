"""Preparations that must be made before torch is imported."""

import os
from collections.abc import Sequence
from pathlib import Path

from seqloom.core.allocator import set_mimalloc_purge_delay
from seqloom.core.threads import limit_threads


def prepare_for_torch(run_folders: Sequence[Path] = ()) -> None:
    """Set the environment variables that torch reads on import, and start integrity checks.

    Environment variables that are already set keep their value. The integrity checks hash the files
    of the run folders in a thread, while the command imports torch, which takes seconds.
    `seqloom.inference.run.load` waits for the results of the checks.

    run_folders: existing run folders that the command is about to load
    """
    # OpenMP threads that spin while idle take cores from other processes. On a busy machine,
    # spinning makes every process several times slower. On an idle machine, it gains nothing.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    limit_threads()
    set_mimalloc_purge_delay()
    if run_folders:
        from seqloom.runs.integrity import start_check

        for folder in run_folders:
            start_check(folder)
