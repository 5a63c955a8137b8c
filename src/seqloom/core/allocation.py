"""Memory that was dropped is wanted again a moment later: here it is kept until then.

A step of training makes and drops the same hundreds of megabytes. Left to themselves, allocators
hand them back to the system, which clears every page before it hands it out again: up to a tenth
of a step on a CPU. Whoever has set an allocator's variables knows better, and is left alone.
"""

import ctypes
import os
from contextlib import suppress

MILLISECONDS = "10000"
"""For which torch's own allocator keeps what was dropped; a step seldom takes longer."""
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's `mallopt`: what may lie idle, and what is asked of the system by itself."""
GLIBC = {TRIM_THRESHOLD: 2**31 - 1, MMAP_THRESHOLD: 2**25}
"""The most that glibc allows."""


def before_torch() -> None:
    """To be called before torch is first imported: on ARM it has an allocator of its own (mimalloc),
    which reads this variable when it is loaded."""
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", MILLISECONDS)


def before_training() -> None:
    """What glibc's allocator is told; other systems have another, and are none the worse."""
    if any(name.startswith("MALLOC_") for name in os.environ):
        return
    with suppress(OSError, AttributeError):
        tell = ctypes.CDLL(None).mallopt
        for number, value in GLIBC.items():
            tell(number, value)
