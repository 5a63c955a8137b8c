"""The import of CTranslate2: on ARM, its idle OpenMP threads must not block other threads."""

import os
import re
import subprocess
import sys

import pytest

from seqloom.inference.engine import package
from seqloom.nn.fast.dispatch import IS_ARM

PROGRAM = """
import os
import torch
from seqloom.inference.engine.package import ctranslate2

before = dict(os.environ)
ctranslate2()
assert os.environ == before, "the environment has changed"
"""
only_on_arm = pytest.mark.skipif(
    sys.platform != "linux" or not IS_ARM,
    reason="only on ARM does CTranslate2 have other threads besides those of OpenMP",
)


def spin_counts(**variables: str) -> list[int]:
    """The spin count of each OpenMP library that a process loads, torch's first.

    OpenMP prints it because of OMP_DISPLAY_ENV.
    """
    environment = {
        name: text for name, text in os.environ.items() if name not in package.OPENMP_WAIT_VARIABLES
    }
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**environment, "OMP_DISPLAY_ENV": "verbose", **variables},
        capture_output=True,
        check=True,
        text=True,
    )
    return [int(count) for count in re.findall(r"GOMP_SPINCOUNT = '(\d+)'", process.stderr)]


@pytest.mark.slow
@only_on_arm
def test_idle_threads_of_ctranslate2_do_not_spin_and_those_of_torch_do() -> None:
    torch_count, ctranslate2_count = spin_counts()
    assert ctranslate2_count == 0
    assert torch_count > 1_000


@pytest.mark.slow
@only_on_arm
@pytest.mark.parametrize("variables", [{"GOMP_SPINCOUNT": "123"}, {"OMP_WAIT_POLICY": "active"}])
def test_existing_openmp_variables_are_kept(variables: dict[str, str]) -> None:
    torch_count, ctranslate2_count = spin_counts(**variables)
    assert ctranslate2_count == torch_count


@pytest.mark.parametrize(
    ("is_arm", "is_imported", "expected"),
    [(True, False, "passive"), (True, True, None), (False, False, None)],
)
def test_wait_policy_is_set_on_arm_during_the_first_import(
    is_arm: bool, is_imported: bool, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later calls do not change the environment, which other threads may read."""
    for name in package.OPENMP_WAIT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delitem(sys.modules, "ctranslate2", raising=False)
    if is_imported:
        monkeypatch.setitem(sys.modules, "ctranslate2", package)
    monkeypatch.setattr(package, "IS_ARM", is_arm)
    policies = []
    monkeypatch.setattr(
        package, "import_optional", lambda *_: policies.append(os.environ.get("OMP_WAIT_POLICY"))
    )
    package.ctranslate2()
    assert policies == [expected]
    assert "OMP_WAIT_POLICY" not in os.environ
