"""What holds for every test: one thread, the CPU, and a cache of the tests' own."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings

# Promises to the last bit hold for one number of threads, and a process that has started threads
# cannot be forked safely. A GPU that is not looked at cannot be in the way either.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
torch.set_num_threads(1)
# How long an example takes says nothing on a machine that others use, too.
settings.register_profile("seqloom", deadline=None)
settings.load_profile("seqloom")


@pytest.fixture(scope="session", autouse=True)
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """For what several tests share; nothing of the user's is seen or left behind."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder / "seqloom"


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees what another kept."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder / "seqloom"
