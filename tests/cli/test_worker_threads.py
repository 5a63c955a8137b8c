"""The number of threads of processes that run at the same time."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from seqloom.cli.commands import serve
from seqloom.cli.parameters.global_options import _apply_threads
from seqloom.cli.torch_setup import prepare_for_torch
from seqloom.core import threads
from seqloom.jobs.batch_translation import worker_processes
from seqloom.jobs.sweeps import sweep
from seqloom.lab.running import runner
from seqloom.serving.server.loading import reserve_event_loop_core

VARIABLE = "OMP_NUM_THREADS"


@pytest.fixture(autouse=True)
def eight_of_sixteen_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setattr(threads, "available_processors", lambda: 8)
    monkeypatch.setattr(threads, "_limit", None)
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)
    for name in (VARIABLE, "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, "")  # restores the value after the test
        monkeypatch.delenv(name)


def batch_translation(workers: int | None) -> int:
    return worker_processes.threads_of_worker(workers)


def server(workers: int) -> int:
    class Supervisor:
        def __init__(self, *arguments: object) -> None:
            pass

        def run(self) -> int:
            return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seqloom.serving.server.supervisor.Supervisor", Supervisor)
        serve._serve_with_workers(None, workers)  # type: ignore[arg-type]
    return int(os.environ[VARIABLE])


def trial_of_sweep(jobs: int | None, ray: str | None = None) -> int | None:
    counts: list[int | None] = []

    def record(recipe: str, folder: Path, count: int | None) -> None:
        counts.append(count)

    with pytest.MonkeyPatch.context() as patch:
        module = "seqloom.jobs.sweeps.sweep"
        patch.setattr(f"{module}.TrialRunner", record)
        patch.setattr(f"{module}.run_on_ray", lambda run, ray, jobs: (run, jobs))
        sweep.run_sweep("recipe", Path("sweep"), [], [], None, jobs, ray, lambda result: None)
    return counts[0]


def experiment(processes: int) -> int:
    counts: list[int] = []

    class Pool:
        def __init__(self, _size: int, _context: object) -> None:
            counts.append(int(os.environ[VARIABLE]))

        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "ProcessPoolExecutor", Pool)
        assert list(runner._run_in_parallel([], processes)) == []
    return counts[0]


WORKERS = [batch_translation, server, trial_of_sweep, experiment]


@pytest.mark.parametrize("threads_of_worker", WORKERS)
@pytest.mark.parametrize(("workers", "expected"), [(2, 4), (3, 2), (16, 1)])
def test_workers_share_the_processors_that_the_process_may_use(
    threads_of_worker: Callable[[int], int], workers: int, expected: int
) -> None:
    prepare_for_torch()
    prepare_for_torch()  # commands call it once more for each run folder
    assert os.environ[VARIABLE] == "8"
    assert threads_of_worker(workers) == expected


@pytest.mark.parametrize("threads_of_worker", WORKERS)
@pytest.mark.parametrize("count", ["3", "8"])  # 8 is also the number of available processors
def test_workers_use_the_number_of_threads_that_the_user_sets(
    threads_of_worker: Callable[[int], int], count: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, count)
    prepare_for_torch()
    assert threads_of_worker(2) == int(count)
    monkeypatch.delenv(VARIABLE)
    prepare_for_torch()
    _apply_threads(int(count))
    assert threads_of_worker(2) == int(count)


def test_new_processes_of_a_batch_translation_load_torch_with_their_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values: list[str | None] = []

    def translate(*arguments: object) -> Iterator[int]:
        values.append(os.environ.get(VARIABLE))
        yield 1

    monkeypatch.setattr(worker_processes, "_translate_with_pool", translate)
    reports = worker_processes.translate_with_processes(None, iter([]), 2, 3)  # type: ignore[arg-type]
    assert len(list(reports)) == 1
    assert [*values, os.environ.get(VARIABLE)] == ["3", None]


def test_ray_workers_use_one_thread_if_their_number_is_not_given() -> None:
    prepare_for_torch()
    assert batch_translation(None) == 1
    assert trial_of_sweep(None, "auto") == 1


@pytest.mark.parametrize(
    ("value", "expected"), [("4", 4), ("4,2", 4), (" 4 ", 4), ("0", None), ("many", None)]
)
def test_the_first_number_of_the_variable_counts(
    value: str, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, value)
    assert threads.configured_threads() == expected


@pytest.mark.parametrize(("configured", "expected"), [(None, [7]), ("8", [])])
def test_the_server_reserves_a_core_for_the_event_loop_unless_the_user_sets_the_threads(
    configured: str | None, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(torch, "set_num_threads", counts.append)
    if configured is not None:
        monkeypatch.setenv(VARIABLE, configured)
    prepare_for_torch()
    reserve_event_loop_core()
    assert counts == expected
