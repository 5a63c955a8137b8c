"""Memory allocator settings that keep freed memory for reuse.

A training step allocates and frees the same hundreds of megabytes every time. With default settings
the allocators return this memory to the operating system, which clears every page before it hands
it out again. This takes up to a tenth of a step on a CPU. Existing settings in the environment
are kept.
"""

import ctypes
import os
from contextlib import suppress

PURGE_DELAY_MS = "10000"
"""Time for which mimalloc keeps freed memory, in milliseconds. A step seldom takes longer."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Constants that select a parameter of glibc's `mallopt`: how many free bytes the allocator keeps at
the top of the heap, and from which size on it requests a block from the operating system
directly."""
MALLOPT_VALUES = {M_TRIM_THRESHOLD: 2**31 - 1, M_MMAP_THRESHOLD: 2**25}
"""The value of each parameter in bytes: the largest that glibc accepts."""


def set_mimalloc_purge_delay() -> None:
    """Set the environment variable that says how long mimalloc keeps freed memory.

    On ARM, torch includes mimalloc, which reads the variable when torch is loaded. Call this
    function before torch is imported for the first time.
    """
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", PURGE_DELAY_MS)


def set_malloc_thresholds() -> None:
    """Let glibc's allocator keep freed memory.

    Does nothing with other C libraries, or if the environment has a variable MALLOC_….
    """
    if any(name.startswith("MALLOC_") for name in os.environ):
        return
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in MALLOPT_VALUES.items():
            mallopt(parameter, value)
