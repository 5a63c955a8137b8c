"""Changes settings of the memory allocators so that they keep freed memory for reuse.

A training step allocates and frees the same hundreds of megabytes every time. With default settings
the allocators return this memory to the operating system, which fills every page with zeros before
a process can use it again. On a CPU, this takes up to a tenth of the time of a step. If the
user has already set these settings in environment variables, this module does not change them.
"""

import ctypes
import os
from contextlib import suppress

PURGE_DELAY_MS = "10000"
"""Time for which mimalloc keeps freed memory, in milliseconds. A training step seldom takes
longer."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Numbers of two parameters of glibc's function `mallopt`. M_TRIM_THRESHOLD: maximum number of free
bytes that the allocator keeps at the top of the heap. M_MMAP_THRESHOLD: minimum size of a block
that the allocator requests directly from the operating system."""
MALLOPT_VALUES = {M_TRIM_THRESHOLD: 2**31 - 1, M_MMAP_THRESHOLD: 2**25}
"""Value of each parameter in bytes. Both are the largest values that glibc accepts."""


def set_mimalloc_purge_delay() -> None:
    """Set the environment variable that says how long mimalloc keeps freed memory.

    On ARM, torch includes mimalloc, which reads the variable when torch is loaded. Call this
    function before torch is imported for the first time.
    """
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", PURGE_DELAY_MS)


def set_malloc_thresholds() -> None:
    """Let glibc's allocator keep freed memory.

    Does nothing with other C libraries, or if there is an environment variable whose name starts
    with MALLOC_.
    """
    if any(name.startswith("MALLOC_") for name in os.environ):
        return
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in MALLOPT_VALUES.items():
            mallopt(parameter, value)
