"""The runner: caching, parallel processes, and the digest of the measuring code."""

import importlib.util
import math
import os
import sys
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seqloom.lab.claims.scale import CLAIM
from seqloom.lab.running import runner
from seqloom.lab.running.code_digest import code_digest
from seqloom.lab.running.machine import describe_machine
from seqloom.lab.running.runner import (
    Experiment,
    TrialJob,
    list_jobs,
    load_measurement,
    load_results,
    run_jobs,
)

CODE = '''"""A claim."""
from seqloom.lab.results import Results


def measure(trial: object) -> dict[str, float]:
    """Measures x."""
    return {"x": 1.0}  # constant


def judge(results: Results) -> bool:
    return True


CLAIM = "x is one"
'''


def ignore_progress(job: TrialJob, activity: str, fraction: float) -> None:
    pass


def digest_of(folder: Path, name: str, code: str) -> str:
    path = folder / f"{name}.py"
    path.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        return code_digest(name)
    finally:
        del sys.modules[name]


def test_the_digest_changes_with_the_code_but_not_with_texts_and_judgement(tmp_path: Path) -> None:
    original = digest_of(tmp_path, "claim_original", CODE)
    reworded = CODE.replace("x is one", "one is x").replace("return True", "return False")
    reworded = reworded.replace("# constant", "# for now").replace("Measures x", "Measures")
    assert digest_of(tmp_path, "claim_reworded", reworded) == original
    assert digest_of(tmp_path, "claim_changed", CODE.replace("1.0", "2.0")) != original


def test_cached_measurements_do_not_run_again(tmp_path: Path) -> None:
    experiment = Experiment(tmp_path, "scale", "tiny")
    jobs = list_jobs(experiment, range(1, 2))
    run_jobs(jobs, 1, ignore_progress)
    activities: list[str] = []
    run_jobs(jobs, 1, lambda job, activity, fraction: activities.append(activity))
    assert activities == ["cached"] * len(jobs)


def test_a_measurement_with_other_settings_is_not_reused(tmp_path: Path) -> None:
    [job, *_] = list_jobs(Experiment(tmp_path, "scale", "tiny"), range(1, 2))
    run_jobs([job], 1, ignore_progress)
    assert load_measurement(job) is not None
    larger = list_jobs(Experiment(tmp_path, "scale", "small"), range(1, 2))[0]
    larger.path.parent.mkdir(parents=True)
    larger.path.write_bytes(job.path.read_bytes())
    assert load_measurement(larger) is None


def test_measured_times_are_not_reused_on_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [list_jobs(Experiment(tmp_path, name, "tiny"), [1])[0] for name in ("cost", "scale")]
    run_jobs(jobs, 1, ignore_progress)
    assert all(load_measurement(job) is not None for job in jobs)
    monkeypatch.setattr(runner, "describe_machine", lambda: "another processor")
    timed, other = (load_measurement(job) for job in jobs)
    assert timed is None
    assert other is not None  # what is not a time is reused


def test_times_are_measured_after_everything_else(tmp_path: Path) -> None:
    jobs = [list_jobs(Experiment(tmp_path, name, "tiny"), [1])[0] for name in ("cost", "scale")]
    finished: list[TrialJob] = []
    run_jobs(jobs, 1, lambda job, status, share: finished.append(job) if share == 1 else None)
    assert finished == [jobs[1], jobs[0]]


def test_the_machine_is_described_with_processor_cores_and_threads() -> None:
    parts = describe_machine().split(", ")
    assert len(parts) >= 3
    assert parts[0]
    assert f"{os.cpu_count()} cores" in parts
    assert any(part.endswith(("thread", "threads")) for part in parts)


@pytest.mark.slow
def test_parallel_processes_measure_the_same_as_one_process(tmp_path: Path) -> None:
    experiments = [Experiment(tmp_path / name, "scale", "tiny") for name in ("one", "two")]
    for experiment, processes in zip(experiments, (1, 2), strict=True):
        assert not run_jobs(list_jobs(experiment, range(1, 2)), processes, ignore_progress)
    sequential, parallel = (load_results(each, range(1, 2)) for each in experiments)
    assert [each.numbers for each in sequential.measurements] == [
        each.numbers for each in parallel.measurements
    ]


def test_a_measurement_that_is_not_finite_fails_and_is_not_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = replace(CLAIM, measure=lambda trial: {"x": 1.0, "slope": math.nan})
    monkeypatch.setattr(runner, "find_claim", lambda name: claim)
    [job, *_] = list_jobs(Experiment(tmp_path, "scale", "tiny"), range(1, 2))
    errors = run_jobs([job], 1, ignore_progress)
    assert str(errors[job]).startswith("slope: the measured value is not finite")
    assert not job.path.exists()


class KilledPool:
    """A process pool whose processes die with their first task."""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> "KilledPool":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, *_: object) -> "Future[Any]":
        future: Future[Any] = Future()
        future.set_exception(BrokenProcessPool("killed"))
        return future


def test_the_error_of_a_killed_process_suggests_fewer_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "ProcessPoolExecutor", KilledPool)
    jobs = list_jobs(Experiment(tmp_path, "scale", "tiny"), range(1, 2))
    errors = run_jobs(jobs, 2, ignore_progress)
    assert set(errors) == set(jobs)
    assert all("start again with fewer --jobs" in str(error) for error in errors.values())
