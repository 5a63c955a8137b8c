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

    A context manager, in which CTranslate2 must be imported. It sets the environment variable
    OMP_WAIT_POLICY and removes it at the end. CTranslate2 ships its own copy of OpenMP, which reads
    this variable only when it is loaded. Nothing is changed if the user has already set one of
    `OPENMP_WAIT_VARIABLES`.

    On ARM, CTranslate2 has OpenMP threads and separate threads for int8 matrix products. Spinning
    OpenMP threads occupy the cores that the int8 threads need. int8 would then be slower than
    float32.
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
