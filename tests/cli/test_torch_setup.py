"""Settings that are made before torch is imported."""

import os

import pytest

from seqloom.cli.torch_setup import prepare_for_torch
from seqloom.cli.training_display import event_lines
from seqloom.core import threads
from seqloom.training.event_log import Event


@pytest.fixture(autouse=True)
def four_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    for name in ("OMP_NUM_THREADS", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, "")  # restores the value after the test
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("available", "given", "expected"),
    [(2, None, "2"), (4, None, None), (2, "3", "3")],
)
def test_the_number_of_threads_is_limited_by_the_available_processors(
    available: int, given: str | None, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "available_processors", lambda: available)
    if given is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    prepare_for_torch()
    assert os.environ.get("OMP_NUM_THREADS") == expected


@pytest.mark.parametrize(
    ("device", "threads", "expected"),
    [("cpu", 2, "cpu with 2 threads"), ("cpu", 1, "cpu with 1 thread"), ("cuda:0", 2, "cuda:0")],
)
def test_training_prints_the_number_of_threads_of_a_cpu(
    device: str, threads: int, expected: str
) -> None:
    data = {"parameters": 1, "examples": 2, "dev_examples": 3, "device": device, "threads": threads}
    [line] = event_lines(Event("start", 0, data), 10)
    assert line.endswith(f"on {expected}")
