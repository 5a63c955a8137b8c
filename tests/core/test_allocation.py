"""Memory that was dropped is there when it is wanted again."""

import ctypes
import os
import subprocess
import sys

import pytest

from seqloom.core import allocation

PROGRAM = """
import resource
import seqloom
import torch
from seqloom.core.allocation import before_training

before_training()
torch.set_num_threads(1)
layers = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(6)))
rows = torch.randn(3000, 256)

def pages_given():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for step in range(8):
    if step == 3:
        before = pages_given()
    layers(rows).tanh().sum().backward()
    layers.zero_grad()
print(pages_given() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="allocators of Linux are meant")
def test_a_step_is_given_hardly_a_page_anew() -> None:
    """Some fifty megabytes are made and dropped in each, thousands of pages."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("MIMALLOC_")
    }
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, check=True, env=environment
    )
    assert int(found.stdout) < 500


def test_who_has_set_an_allocator_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIMALLOC_PURGE_DELAY", "7")
    allocation.before_torch()
    assert os.environ["MIMALLOC_PURGE_DELAY"] == "7"

    def refuse(name: object) -> object:
        raise AssertionError("told")

    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    monkeypatch.setattr(ctypes, "CDLL", refuse)
    allocation.before_training()


def test_another_c_library_is_none_the_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MALLOC_")]:
        monkeypatch.delenv(name)

    def without_mallopt(name: object) -> object:
        raise OSError("no such library")

    monkeypatch.setattr(ctypes, "CDLL", without_mallopt)
    allocation.before_training()
