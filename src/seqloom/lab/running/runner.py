"""Runs the experiments that test claims: every condition with every seed.

A job measures one condition with one seed. Measurements are cached, so that a repeated run only
measures what is missing. Jobs run one after another or in parallel processes. Jobs that measure
time run alone, after all others.
"""

import hashlib
import json
import math
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

from seqloom import __version__
from seqloom.core.device import best_device
from seqloom.core.errors import SeqloomError, TrainingError
from seqloom.core.storage import storage_errors, write_file
from seqloom.core.threads import threads_of_new_processes, threads_per_process
from seqloom.lab.claim import Size, Trial
from seqloom.lab.registry import find_claim
from seqloom.lab.results import Measurement, Results
from seqloom.lab.running.code_digest import code_digest
from seqloom.lab.running.machine import describe_machine


@dataclass(frozen=True)
class Experiment:
    """The experiment that tests one claim, and its folders.

    out:   folder for all experiments
    claim: name of the claim
    size:  size of models and data, for example "tiny"
    """

    out: Path
    claim: str
    size: Size

    @property
    def folder(self) -> Path:
        """Folder for the measurements and reports of this experiment."""
        return self.out / self.size / self.claim

    @property
    def models(self) -> Path:
        """Folder for trained models. All experiments share it, because some use the same model."""
        return self.out / "models"


@dataclass(frozen=True)
class TrialJob:
    """A job that measures one condition with one seed.

    It refers to the claim by name, so that it can be pickled and sent to another process.
    """

    experiment: Experiment
    condition: str
    seed: int

    @property
    def description(self) -> str:
        return f"{self.experiment.claim}: {self.condition}, seed {self.seed}"

    @property
    def key(self) -> str:
        """Cache key: a digest of everything that affects the measurement."""
        claim = find_claim(self.experiment.claim)
        settings = repr(claim.sizes[self.experiment.size])
        code = code_digest(claim.measure.__module__)
        # Times depend on the machine; other measurements are reused wherever they were made.
        machine = describe_machine() if claim.is_timed else ""
        parts = (__version__, claim.name, code, settings, self.condition, self.seed, machine)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    @property
    def path(self) -> Path:
        """File of the cached measurement."""
        name = f"{self.condition}-{self.seed}".replace("/", "-").replace(" ", "-")
        return self.experiment.folder / "measured" / f"{name}.json"


JobProgress = Callable[[TrialJob, str, float], None]
"""Receives a job, its current activity and its completed fraction."""


def list_jobs(experiment: Experiment, seeds: Sequence[int]) -> list[TrialJob]:
    """List all jobs of an experiment, ordered by seed.

    All conditions are measured with the first seed, then all conditions with the second, and so on.
    """
    conditions = find_claim(experiment.claim).conditions
    return [TrialJob(experiment, condition, seed) for seed in seeds for condition in conditions]


def load_measurement(job: TrialJob) -> Measurement | None:
    """Load the cached measurement of a job.

    Returns None if the file is missing or damaged. Also returns None if the cache key in the file
    differs from `job.key`, for example because the code of the claim has changed.
    """
    try:
        content = json.loads(job.path.read_bytes())
        return Measurement(**content["measurement"]) if content["key"] == job.key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def run_jobs(
    jobs: Sequence[TrialJob], processes: int, progress: JobProgress
) -> dict[TrialJob, SeqloomError]:
    """Run all jobs that have no cached measurement. Returns the errors of failed jobs.

    A failed job does not stop the others.
    """
    pending = []
    for job in jobs:
        if load_measurement(job) is None:
            pending.append(job)
        else:
            progress(job, "cached", 1.0)
    timed = [job for job in pending if find_claim(job.experiment.claim).is_timed]
    others = [job for job in pending if job not in timed]
    outcomes = (
        _run_in_parallel(others, processes)
        if processes > 1 and others
        else _run_in_sequence(others, progress)
    )
    errors: dict[TrialJob, SeqloomError] = {}
    for job, error in chain(outcomes, _run_in_sequence(timed, progress)):
        if error is not None:
            errors[job] = error
        progress(job, "done" if error is None else "failed", 1.0)
    return errors


Outcome = tuple[TrialJob, SeqloomError | None]


def _run_in_sequence(jobs: Sequence[TrialJob], progress: JobProgress) -> Iterator[Outcome]:
    for job in jobs:
        yield job, _try_job(job, progress)


def _run_in_parallel(jobs: Sequence[TrialJob], processes: int) -> Iterator[Outcome]:
    # A process that has used a GPU or threads cannot be forked safely.
    context = multiprocessing.get_context("spawn")
    with (
        threads_of_new_processes(threads_per_process(processes)),
        ProcessPoolExecutor(processes, context) as pool,
    ):
        futures = {pool.submit(_try_job, job): job for job in jobs}
        try:
            for future in as_completed(futures):
                yield futures[future], _error_of(future)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _error_of(future: "Future[SeqloomError | None]") -> SeqloomError | None:
    """Return the error of a job, or None if the job succeeded.

    If the process of the job was killed, returns a TrainingError.
    """
    try:
        return future.result()
    except BrokenProcessPool:
        return TrainingError(
            "a process was killed, most likely because memory ran out; completed measurements are "
            "kept, so start again with fewer --jobs"
        )


def _no_progress(job: TrialJob, activity: str, fraction: float) -> None:
    pass


def _try_job(job: TrialJob, progress: JobProgress = _no_progress) -> SeqloomError | None:
    try:
        _run_job(job, progress)
    except SeqloomError as error:
        return error
    return None


def _run_job(job: TrialJob, progress: JobProgress) -> None:
    """Measure a condition with a seed, and write the measurement to the cache."""
    claim = find_claim(job.experiment.claim)

    def trial_progress(activity: str, fraction: float) -> None:
        # At most 95%: the job is complete only when its measurement is written.
        progress(job, activity, min(fraction, 1.0) * 0.95)

    settings = claim.sizes[job.experiment.size]
    trial = Trial(job.condition, job.seed, settings, job.experiment.models, trial_progress)
    start = time.perf_counter()
    numbers = {name: float(value) for name, value in claim.measure(trial).items()}
    seconds = round(time.perf_counter() - start, 3)
    if not_finite := [name for name, value in numbers.items() if not math.isfinite(value)]:
        raise TrainingError(
            f"{', '.join(not_finite)}: the measured value is not finite; the training has probably "
            f"diverged. Delete the trained models in {job.experiment.models} and run again"
        )
    measurement = Measurement(
        job.condition, job.seed, numbers, seconds, str(best_device()), describe_machine()
    )
    content = {"key": job.key, "measurement": asdict(measurement)}
    with storage_errors(job.path):
        job.path.parent.mkdir(parents=True, exist_ok=True)
    write_file(job.path, json.dumps(content, indent=1, ensure_ascii=False).encode())


def load_results(experiment: Experiment, seeds: Sequence[int]) -> Results:
    """Load all measurements of an experiment. Every job must have been run before."""
    measurements = []
    for job in list_jobs(experiment, seeds):
        measurement = load_measurement(job)
        assert measurement is not None, f"{job.description} has no measurement"
        measurements.append(measurement)
    return Results(measurements)
