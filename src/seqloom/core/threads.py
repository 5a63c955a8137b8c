"""The number of CPU threads of this process and of the processes that it starts."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from seqloom.core.processors import available_processors

THREADS_VARIABLE = "OMP_NUM_THREADS"
"""Environment variable with the number of threads. torch reads this variable on import."""

_limit: str | None = None
"""The value that `limit_threads` gave the variable. None: it did not change the variable."""


def limit_threads() -> None:
    """Set OMP_NUM_THREADS if this process may use only some of the machine's processors.

    The value is the number of processors that CPU affinity and quotas allow. If the variable is
    already set, this function does not change it.
    """
    global _limit
    processors = available_processors()
    # On a whole machine, torch's own default is better: one thread per physical core.
    if processors < (os.cpu_count() or 1) and THREADS_VARIABLE not in os.environ:
        _limit = os.environ[THREADS_VARIABLE] = str(processors)


def set_threads(count: int) -> None:
    """Set OMP_NUM_THREADS to the value of --threads."""
    global _limit
    _limit = None
    os.environ[THREADS_VARIABLE] = str(count)


def configured_threads() -> int | None:
    """Return the number of threads that the user has set; None if the user has not set it.

    The user sets it with --threads or OMP_NUM_THREADS. If `limit_threads` has set OMP_NUM_THREADS,
    the result is None.
    """
    value = os.environ.get(THREADS_VARIABLE)
    if value is None or value == _limit:
        return None
    first = value.partition(",")[0].strip()  # "4,2" is a value for nested parallelism
    return int(first) or None if first.isdigit() else None


def threads_per_process(processes: int) -> int:
    """Return the number of threads of each of several processes that run at the same time.

    This is the value of --threads or OMP_NUM_THREADS. If neither is set, each process gets an equal
    share of the processors that this process may use, at least 1.
    """
    return configured_threads() or max(1, available_processors() // processes)


@contextmanager
def threads_of_new_processes(count: int) -> Iterator[None]:
    """Set OMP_NUM_THREADS for the processes that are started in the `with` block.

    torch reads this variable on import. So each new process must import torch itself (start method
    "spawn"). Calling `torch.set_num_threads` in the new process is not enough: the call comes too
    late for the library that computes matrix products, and does not limit its threads.
    """
    saved = os.environ.get(THREADS_VARIABLE)
    os.environ[THREADS_VARIABLE] = str(count)
    try:
        yield
    finally:
        if saved is None:
            del os.environ[THREADS_VARIABLE]
        else:
            os.environ[THREADS_VARIABLE] = saved
