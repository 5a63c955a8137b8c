"""Run the tests with the oldest torch that pyproject.toml allows.

    python tools/oldest_torch.py [PYTEST ARGUMENTS]

Creates the environment `.venv-oldest` on first use. Without arguments it runs the tests of the
packages that compute with torch; the tests of the compiled engine skip themselves on a torch that
is too old for it. torch is installed without its dependencies on CUDA packages.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENT = ROOT / ".venv-oldest"
TORCH_DEPENDENCIES = ["filelock", "typing-extensions", "sympy", "networkx", "jinja2", "fsspec"]
TESTS = ["tests/nn", "tests/models", "tests/decoding", "tests/claims", "tests/training"]


def oldest_torch() -> str:
    """The lower bound of torch in pyproject.toml."""
    match = re.search(r'"torch>=([\d.]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert match is not None, "pyproject.toml has no lower bound for torch"
    return f"{match[1]}.0" if match[1].count(".") == 1 else match[1]


def set_up(version: str) -> Path:
    """Create the environment if necessary. Returns its Python."""
    python = ENVIRONMENT / "bin" / "python"
    if not (ENVIRONMENT / f"torch-{version}").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
        install = [str(python), "-m", "pip", "install", "-q"]
        subprocess.run([*install, "--no-deps", f"torch=={version}"], check=True)
        subprocess.run([*install, *TORCH_DEPENDENCIES], check=True)
        subprocess.run([*install, "-e", f"{ROOT}[plots,serve,dev]"], check=True)
        (ENVIRONMENT / f"torch-{version}").touch()
    return python


def main() -> int:
    version = oldest_torch()
    python = set_up(version)
    arguments = sys.argv[1:] or ["-n", "2", *TESTS]
    print(f"torch {version}: pytest {' '.join(arguments)}", flush=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [str(python), "-m", "pytest", "-q", *arguments], cwd=ROOT, env=environment
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
