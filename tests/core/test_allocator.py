"""The allocator settings keep freed memory for reuse."""

import ctypes
import os
import subprocess
import sys

import pytest

from seqloom.core import allocator

PROGRAM = """
import resource
import seqloom
import torch
from seqloom.core.allocator import set_malloc_thresholds

set_malloc_thresholds()
torch.set_num_threads(1)
layers = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(6)))
rows = torch.randn(3000, 256)

def page_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

for step in range(8):
    if step == 3:
        before = page_faults()
    layers(rows).tanh().sum().backward()
    layers.zero_grad()
print(page_faults() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the settings are for allocators of Linux")
def test_a_step_causes_hardly_any_page_faults() -> None:
    """Each step allocates and frees about fifty megabytes: 60,000 pages in five steps.

    Some matrix libraries request a few hundred pages per step from the operating system themselves.
    """
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("MIMALLOC_")
    }
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, check=True, env=environment
    )
    assert int(result.stdout) < 5_000


def test_existing_settings_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIMALLOC_PURGE_DELAY", "7")
    allocator.set_mimalloc_purge_delay()
    assert os.environ["MIMALLOC_PURGE_DELAY"] == "7"

    libraries: list[object] = []
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    monkeypatch.setattr(ctypes, "CDLL", libraries.append)
    allocator.set_malloc_thresholds()
    assert libraries == []


def test_other_c_libraries_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MALLOC_")]:
        monkeypatch.delenv(name)
    libraries: list[object] = []

    def without_mallopt(name: object) -> object:
        libraries.append(name)
        raise OSError("no such library")

    monkeypatch.setattr(ctypes, "CDLL", without_mallopt)
    allocator.set_malloc_thresholds()
    assert libraries == [None]
