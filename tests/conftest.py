"""Settings of all tests: one thread, the CPU, and a temporary cache."""

import gc
import itertools
import os
import signal
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Bit-exact results require a fixed number of threads, and a process with threads cannot be forked
# safely. The tests also give the same results on a machine with a GPU.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
torch.set_num_threads(1)
# A shell without job control starts background processes in which SIGINT is ignored. Tests of Ctrl-C
# need the handler that Python installs in the foreground.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# The time of an example is not meaningful on a shared machine.
settings.register_profile("seqloom", deadline=None, max_examples=25)
settings.load_profile("seqloom")

QUICK_SHARE = 24
"""`make quick` runs the claims about every decoder on one in this many decoders."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the claims about most decoders as slow. The full suite runs all of them."""
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        name = getattr(parameters.get("specimen"), "name", None)
        if name is not None and zlib.crc32(name.encode()) % QUICK_SHARE:
            item.add_marker(pytest.mark.slow)


def pytest_collection() -> None:
    """Collect no garbage while pytest imports the tests: almost all new objects stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exempt the collected tests from garbage collection: it would visit their many objects again.

    Afterwards, collect garbage less often than by default.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The cache of fixtures with a wider scope than one test. The user's cache is not used."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder / "seqloom"


@pytest.fixture(scope="session", autouse=True)
def no_flush_to_disk() -> Iterator[None]:
    """Skip os.fsync in this process: it protects from power failures only, and a short training
    calls it a hundred times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def empty_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Paths for the caches of single tests. `mktemp` would list all earlier folders for each test."""
    parent = tmp_path_factory.mktemp("caches")
    return (parent / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def isolated_cache(empty_folders: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for each test. Its folder does not exist until the test writes to it."""
    folder = next(empty_folders)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder / "seqloom"


@pytest.fixture(scope="session")
def sentence_run(tmp_path_factory: pytest.TempPathFactory, session_cache: Path) -> Path:
    """The folder of a run that is trained on sentences. Tests must not change it."""
    from support.sentence_runs import train_sentence_run

    return train_sentence_run(tmp_path_factory.mktemp("sentences") / "run")


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    """Chromium. Defined here once, because a process can run Playwright only once at a time."""
    from support.browsing import open_browser

    with open_browser() as opened:
        yield opened
