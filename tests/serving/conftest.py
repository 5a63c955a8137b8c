"""Trained runs, a server and API keys that several tests share."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.browsing import desk, reports, visitor
from support.server_process import KEY, ServerProcess, start_server
from support.small_runs import TRAINERS

__all__ = ["desk", "reports", "visitor"]  # fixtures


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of one trained run of every kind, by name."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        return {name: train(folder / name) for name, train in TRAINERS.items()}


@pytest.fixture(scope="session")
def server(runs: dict[str, Path]) -> Iterator[ServerProcess]:
    """A server of one run of every kind, with the default limits."""
    folders = [path for name, path in runs.items() if name != "snail"]
    server = start_server(folders, "--languages", "reverser=la:it")
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the digest of one API key."""
    path = tmp_path_factory.mktemp("keys") / "keys"
    path.write_text(f"{hashlib.sha256(KEY.encode()).hexdigest()}  ali\n", encoding="utf-8")
    return path
