"""CTranslate2 itself, if it is installed."""

import os
import platform
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from seqloom.core.extras import require

ARM = ("aarch64", "arm64")
WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
"""How long OpenMP's threads stay awake when their work is done."""


_loading = threading.Lock()


def ctranslate2() -> ModuleType:
    """The package, or how to get it."""
    with _loading, _threads_that_sleep():
        return require("ctranslate2", "ctranslate2", "the engine 'ctranslate2'")


@contextmanager
def _threads_that_sleep() -> Iterator[None]:
    """On ARM it has two crowds of threads: those of OpenMP, and others that multiply bytes. The
    first stay awake after each piece of work, in case there is more, and the second wait for a
    core meanwhile: int8 is slower than float32 then. OpenMP, of which CTranslate2 brings its own
    copy, looks at the environment once, when it is loaded; from then on that is left alone.
    """
    told = any(name in os.environ for name in WAITING)
    if platform.machine() not in ARM or told or "ctranslate2" in sys.modules:
        yield
        return
    os.environ["OMP_WAIT_POLICY"] = "passive"
    try:
        yield
    finally:
        del os.environ["OMP_WAIT_POLICY"]
