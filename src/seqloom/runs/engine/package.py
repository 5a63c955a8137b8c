"""Imports the optional package CTranslate2."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from seqloom.core.extras import import_optional
from seqloom.nn.fast.dispatch import IS_ARM

OPENMP_WAIT_VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
"""Environment variables that control how long idle OpenMP threads spin."""

_import_lock = threading.Lock()


def ctranslate2() -> ModuleType:
    """Import CTranslate2. Raises an error with install instructions if it is missing."""
    with _import_lock, _passive_openmp_threads():
        return import_optional("ctranslate2", "ctranslate2", "the engine 'ctranslate2'")


@contextmanager
def _passive_openmp_threads() -> Iterator[None]:
    """On ARM, make idle OpenMP threads of CTranslate2 sleep instead of spin.

    On ARM, CTranslate2 has OpenMP threads and separate threads for int8 matrix products. Spinning
    OpenMP threads occupy the cores that the int8 threads need, and int8 becomes slower than
    float32. CTranslate2 ships its own copy of OpenMP, which reads environment variables only when
    it is loaded. If the user has set one of `OPENMP_WAIT_VARIABLES`, nothing is changed.
    """
    is_set = any(name in os.environ for name in OPENMP_WAIT_VARIABLES)
    if not IS_ARM or is_set or "ctranslate2" in sys.modules:
        yield
        return
    os.environ["OMP_WAIT_POLICY"] = "passive"
    try:
        yield
    finally:
        del os.environ["OMP_WAIT_POLICY"]
