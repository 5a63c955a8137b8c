"""What `import seqloom` imports, and what it does not need."""

import os
import subprocess
import sys

import pytest

from support.source_folder import SOURCE

HEAVY = {"torch", "numpy", "pydantic", "rich", "typer", "sentencepiece", "sacrebleu"}
POSIX_ONLY = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")

IMPORT_EVERY_MODULE = f"""
import importlib, pkgutil, sys
for name in {POSIX_ONLY!r}:
    sys.modules[name] = None  # makes `import name` fail
import seqloom
modules = [module.name for module in pkgutil.walk_packages(seqloom.__path__, "seqloom.")]
modules.remove("seqloom.__main__")
for name in modules:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != "triton":  # only torch with CUDA includes triton
            raise
print(len(modules))
"""


def run_python(program: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    process = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_importing_seqloom_imports_no_heavy_package() -> None:
    """Without these packages, `import seqloom` takes a few hundredths of a second."""
    program = "import sys, seqloom; print(*{name.partition('.')[0] for name in sys.modules})"
    assert not HEAVY & set(run_python(program).split())


@pytest.mark.slow
def test_every_module_can_be_imported_without_posix_only_modules() -> None:
    assert int(run_python(IMPORT_EVERY_MODULE)) > 200
