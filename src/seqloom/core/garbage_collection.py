"""Pauses Python's search for reference cycles."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_active_pauses = 0
_was_enabled = False


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Pause the search for reference cycles, which is slow if many new objects exist.

    Use this around code that creates thousands of objects without reference cycles. The pause applies to
    the whole process. If several threads pause the search at the same time, the last one to finish
    restores it.
    """
    global _active_pauses, _was_enabled
    with _lock:
        if _active_pauses == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _active_pauses += 1
    try:
        yield
    finally:
        with _lock:
            _active_pauses -= 1
            if _active_pauses == 0 and _was_enabled:
                gc.enable()
