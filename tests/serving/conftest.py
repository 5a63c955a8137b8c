"""Servers that several tests share: one of every kind of run, and one that bears little."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from browsing import browser, desk, reports, visitor
from calling_server import KEY, Server, start
from small_runs import TRAINERS

__all__ = ["browser", "desk", "reports", "visitor"]  # fixtures from elsewhere
NARROW = {
    "in_flight": 2,
    "queue": 3,
    "queue_seconds": 60,
    "deadline_seconds": 8,
    "body_seconds": 1,
    "header_seconds": 1,
    "characters": 20_000,
    "image_pixels": 1000,
    "beam": 3,
}


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        return {name: train(folder / name) for name, train in TRAINERS.items()}


@pytest.fixture(scope="session")
def server(runs: dict[str, Path]) -> Iterator[Server]:
    """Serves a run of every kind, within the usual limits."""
    served = [path for name, path in runs.items() if name != "snail"]
    server = start(served, "--languages", "reverser=la:it")
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="session")
def narrow(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Bears little, is slow, and counts."""
    limits = [part for name, value in NARROW.items() for part in ("--limit", f"{name}={value}")]
    server = start([runs["snail"], runs["captioner"]], *limits, "--engine", "torch")
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "keys"
    path.write_text(f"{hashlib.sha256(KEY.encode()).hexdigest()}  ali\n", encoding="utf-8")
    return path
