"""Trains the trials of a sweep in processes of their own."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from seqloom.core.errors import SeqloomError
from seqloom.core.extras import import_optional
from seqloom.jobs.sweeps.space import SweepTrial
from seqloom.metrics.build import higher_is_better
from seqloom.runs.listing import STATUS, ListedRun, read_listed_run

INTERRUPTED = STATUS["signal"]
MAX_ERROR_LINES = 20
"""Number of lines at the end of the log that are searched for the error message."""


@dataclass(frozen=True)
class TrialResult:
    """The result of a trial.

    run:   a summary of the run folder of the trial, with its best score. None if there is no
           summary, for example because training failed at the start
    error: why the trial failed; None if it did not fail
    """

    trial: SweepTrial
    folder: Path
    run: ListedRun | None
    error: str | None

    @property
    def best(self) -> float | None:
        return None if self.run is None else self.run.best

    def to_json(self) -> dict[str, Any]:
        return {
            "trial": self.trial.name,
            "settings": list(self.trial.settings),
            "folder": str(self.folder),
            "score": None if self.run is None else self.run.score,
            "best": self.best,
            "best_step": None if self.run is None else self.run.best_step,
            "status": "failed" if self.error or self.run is None else self.run.status,
            "error": self.error,
        }


@dataclass(frozen=True)
class TrialRunner:
    """Trains trials with `seqloom train`. It can be sent to the workers of a Ray cluster.

    recipe:  recipe file, or the name of a bundled recipe
    folder:  folder of the sweep, which contains one run folder per trial
    threads: number of CPU threads of each training run. None: the variable OMP_NUM_THREADS is not
             changed
    """

    recipe: str
    folder: Path
    threads: int | None

    def finished(self, trial: SweepTrial) -> TrialResult | None:
        """Return the result of a trial if its training is already finished, otherwise None."""
        folder = self.folder / trial.name
        if not (folder / "config.toml").is_file():
            return None
        run = read_listed_run(folder)
        is_finished = run.status in STATUS.values() and run.status != INTERRUPTED
        return TrialResult(trial, folder, run, None) if is_finished else None

    def __call__(self, trial: SweepTrial) -> TrialResult:
        """Train a trial and return its result.

        If training was interrupted earlier, it is resumed. If it is already finished, the trial is
        not trained again. If training fails, no exception is raised, but the field `error` of the
        result says why.
        """
        if (result := self.finished(trial)) is not None:
            return result
        folder, log = self.folder / trial.name, self.folder / f"{trial.name}.log"
        command = [sys.executable, "-m", "seqloom", "train", self.recipe, "--run", str(folder)]
        command += [part for setting in trial.settings for part in ("--set", setting)]
        if (folder / "config.toml").is_file():
            command.append("--resume")
        environment = dict(os.environ)
        if self.threads is not None:
            environment["OMP_NUM_THREADS"] = str(self.threads)
        with log.open("wb") as file:
            code = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=environment,
                check=False,
            ).returncode
        run = read_listed_run(folder) if (folder / "config.toml").is_file() else None
        return TrialResult(trial, folder, run, _error(log, code) if code else None)


def _error(log: Path, code: int) -> str:
    """Return the exit code of a training process and the error message at the end of its log."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-MAX_ERROR_LINES:]
    starts = [index for index, line in enumerate(lines) if line.startswith("error:")]
    message = " ".join(lines[starts[-1] :]).removeprefix("error: ") if starts else "no message"
    return f"exit code {code}: {message} (log: {log})"


def run_trials(
    run: Callable[[SweepTrial], TrialResult], trials: Iterable[SweepTrial], jobs: int
) -> Iterator[TrialResult]:
    """Run trials, `jobs` at a time, and yield their results as they end.

    The next trial is taken only when a process is free, so it can depend on earlier results.
    """
    remaining = iter(trials)
    waiting: set[Future[TrialResult]] = set()
    with ThreadPoolExecutor(jobs) as pool:
        while True:
            waiting |= {pool.submit(run, trial) for trial in islice(remaining, jobs - len(waiting))}
            if not waiting:
                return
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()


def run_on_ray(
    runner: TrialRunner, address: str, jobs: int | None
) -> tuple[Callable[[SweepTrial], TrialResult], int]:
    """Connect to a Ray cluster.

    Returns a function that trains a trial on the cluster, and the number of trials to run at once.

    jobs: number of trials to run at once. None means one per GPU or, without GPUs, the number of
          CPU cores divided by the number of threads of a trial.
    """
    ray: Any = import_optional("ray", "cluster", "--ray")
    threads = runner.threads or 1
    local_cores = None if jobs is None else jobs * threads
    ray.init(
        address=address,
        num_cpus=local_cores if address == "local" else None,
        log_to_driver=False,
        logging_level="ERROR",
    )
    resources = ray.cluster_resources()
    gpus = int(resources.get("GPU", 0))
    train = ray.remote(num_cpus=threads, num_gpus=1 if gpus else 0, max_retries=1)(_train_trial)

    def run(trial: SweepTrial) -> TrialResult:
        try:
            result: TrialResult = ray.get(train.remote(runner, trial))
        except ray.exceptions.RayError as error:
            return TrialResult(trial, runner.folder / trial.name, None, f"Ray: {error}")
        return result

    return run, jobs or gpus or max(1, int(resources.get("CPU", 1)) // threads)


def _train_trial(runner: TrialRunner, trial: SweepTrial) -> TrialResult:
    """Train a trial in a Ray task. Ray needs a function instead of a method."""
    return runner(trial)


def best_first(results: Iterable[TrialResult]) -> list[TrialResult]:
    """Sort results by their score. Results without a score are last."""

    def key(result: TrialResult) -> tuple[bool, float, str]:
        if result.run is None or result.best is None:
            return True, 0.0, result.trial.name
        sign = -1.0 if higher_is_better(result.run.score) else 1.0
        return False, sign * result.best, result.trial.name

    return sorted(results, key=key)


class SweepFailedError(SeqloomError):
    """Some trials of a sweep failed. All others are finished."""
