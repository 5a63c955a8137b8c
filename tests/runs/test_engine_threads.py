"""Threads of CTranslate2 that have nothing to do leave the cores to those that have."""

import os
import platform
import re
import subprocess
import sys

import pytest

from seqloom.runs.engine import package

PROGRAM = """
import os
import torch
from seqloom.runs.engine.package import ctranslate2

before = dict(os.environ)
ctranslate2()
assert os.environ == before, "the environment is left as it was"
"""


def patience(**told: str) -> list[int]:
    """How often the threads of each OpenMP that a process loads look for work before they sleep,
    as OpenMP itself tells it: torch's first."""
    environment = {
        name: text for name, text in os.environ.items() if name not in package.OPENMP_WAIT_VARIABLES
    }
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**environment, "OMP_DISPLAY_ENV": "verbose", **told},
        capture_output=True,
        check=True,
        text=True,
    )
    return [int(count) for count in re.findall(r"GOMP_SPINCOUNT = '(\d+)'", ran.stderr)]


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in package.ARM,
    reason="only on ARM has CTranslate2 other threads beside those of OpenMP",
)
def test_on_arm_they_sleep_at_once_and_those_of_torch_do_not() -> None:
    of_torch, of_ctranslate2 = patience()
    assert of_ctranslate2 == 0
    assert of_torch > 1_000


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in package.ARM,
    reason="elsewhere nothing is said to them",
)
@pytest.mark.parametrize("how", [{"GOMP_SPINCOUNT": "123"}, {"OMP_WAIT_POLICY": "active"}])
def test_who_has_said_how_they_wait_is_obeyed(how: dict[str, str]) -> None:
    of_torch, of_ctranslate2 = patience(**how)
    assert of_ctranslate2 == of_torch


@pytest.mark.parametrize(
    ("machine", "loaded", "said"),
    [("aarch64", False, "passive"), ("aarch64", True, None), ("x86_64", False, None)],
)
def test_it_is_said_where_it_counts_and_only_when_they_are_loaded(
    machine: str, loaded: bool, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that finds the package there changes nothing that other threads may look at."""
    for name in package.OPENMP_WAIT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delitem(sys.modules, "ctranslate2", raising=False)
    if loaded:
        monkeypatch.setitem(sys.modules, "ctranslate2", package)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    heard = []
    monkeypatch.setattr(
        package, "require", lambda *_: heard.append(os.environ.get("OMP_WAIT_POLICY"))
    )
    package.ctranslate2()
    assert heard == [said]
    assert "OMP_WAIT_POLICY" not in os.environ
