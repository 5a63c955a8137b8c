"""Running claims: every condition with every seed, each once, side by side if wanted."""

import hashlib
import json
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from seqloom import __version__
from seqloom.core.errors import SeqloomError, TrainingError
from seqloom.core.storage import storage_errors, write_file
from seqloom.lab.claim import Size, Trial
from seqloom.lab.code import code_of
from seqloom.lab.registry import find_claim
from seqloom.lab.results import Measurement, Results
from seqloom.runs.device import best_device


@dataclass(frozen=True)
class Place:
    """Where a claim of one size is written: measurements, and what was made of them."""

    out: Path
    claim: str
    size: Size

    @property
    def folder(self) -> Path:
        return self.out / self.size / self.claim

    @property
    def models(self) -> Path:
        """One folder for all claims: several may need the same model."""
        return self.out / "models"


@dataclass(frozen=True)
class Job:
    """One condition with one seed, by name, so that another process can do it."""

    place: Place
    condition: str
    seed: int

    @property
    def words(self) -> str:
        return f"{self.place.claim}: {self.condition}, seed {self.seed}"

    @property
    def key(self) -> str:
        """All that decides what comes out; measured under another key it is measured again."""
        claim = find_claim(self.place.claim)
        settings = repr(claim.sizes[self.place.size])
        code = code_of(claim.measure.__module__)
        parts = (__version__, claim.name, code, settings, self.condition, self.seed)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    @property
    def path(self) -> Path:
        name = f"{self.condition}-{self.seed}".replace("/", "-").replace(" ", "-")
        return self.place.folder / "measured" / f"{name}.json"


Watch = Callable[[Job, str, float], None]
"""Which job, what it does now, and which share of it is done (1: all)."""


def jobs_of(place: Place, seeds: Sequence[int]) -> list[Job]:
    """Seed by seed, so that something of everything is there early."""
    conditions = find_claim(place.claim).conditions
    return [Job(place, condition, seed) for seed in seeds for condition in conditions]


def measured(job: Job) -> Measurement | None:
    """What an earlier run has measured, if it is still what would be measured now."""
    try:
        content = json.loads(job.path.read_bytes())
        return Measurement(**content["measurement"]) if content["key"] == job.key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None  # not there or not whole: it is measured again


def carry_out(jobs: Sequence[Job], at_once: int, watch: Watch) -> dict[Job, SeqloomError]:
    """Measure what is not measured yet. One that goes wrong is returned, and does not stop others."""
    waiting = []
    for job in jobs:
        if measured(job) is None:
            waiting.append(job)
        else:
            watch(job, "known", 1.0)
    trouble: dict[Job, SeqloomError] = {}
    for job, error in _side_by_side(waiting, at_once) if at_once > 1 else _in_turn(waiting, watch):
        if error is not None:
            trouble[job] = error
        watch(job, "done" if error is None else "failed", 1.0)
    return trouble


Outcome = tuple[Job, SeqloomError | None]


def _in_turn(jobs: Sequence[Job], watch: Watch) -> Iterator[Outcome]:
    for job in jobs:
        yield job, _try(job, watch)


def _side_by_side(jobs: Sequence[Job], at_once: int) -> Iterator[Outcome]:
    # Fresh processes: one that has used a GPU or threads cannot be forked.
    fresh = multiprocessing.get_context("spawn")
    share = max(1, (os.cpu_count() or 1) // at_once)
    with ProcessPoolExecutor(at_once, fresh, torch.set_num_threads, (share,)) as pool:
        futures = {pool.submit(_try, job): job for job in jobs}
        try:
            for future in as_completed(futures):
                yield futures[future], _outcome(future)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _outcome(future: "Future[SeqloomError | None]") -> SeqloomError | None:
    try:
        return future.result()
    except BrokenProcessPool:
        return TrainingError(
            "a process was killed from outside, most likely for want of memory; what was measured "
            "is kept, so start again with fewer --jobs"
        )


def _unwatched(job: Job, words: str, share: float) -> None:
    pass


def _try(job: Job, watch: Watch = _unwatched) -> SeqloomError | None:
    try:
        _measure(job, watch)
    except SeqloomError as error:
        return error
    return None


def _measure(job: Job, watch: Watch) -> None:
    claim = find_claim(job.place.claim)

    def tell(words: str, share: float) -> None:
        # The job is done when its numbers are written, not when its training is.
        watch(job, words, min(share, 1.0) * 0.95)

    settings = claim.sizes[job.place.size]
    trial = Trial(job.condition, job.seed, settings, job.place.models, tell)
    began = time.perf_counter()
    numbers = {name: float(value) for name, value in claim.measure(trial).items()}
    seconds = round(time.perf_counter() - began, 3)
    if lost := [name for name, value in numbers.items() if not math.isfinite(value)]:
        raise TrainingError(
            f"{', '.join(lost)} came out as no number, so the model has learned nothing sound; "
            f"remove what it learned, in {job.place.models}, and try again"
        )
    found = Measurement(job.condition, job.seed, numbers, seconds, str(best_device()))
    content = {"key": job.key, "measurement": asdict(found)}
    with storage_errors(job.path):
        job.path.parent.mkdir(parents=True, exist_ok=True)
    write_file(job.path, json.dumps(content, indent=1, ensure_ascii=False).encode())


def results_of(place: Place, seeds: Sequence[int]) -> Results:
    """All measurements of a claim whose jobs are done."""
    return Results(list(_all_measured(jobs_of(place, seeds))))


def _all_measured(jobs: Sequence[Job]) -> Iterator[Measurement]:
    for job in jobs:
        found = measured(job)
        assert found is not None, f"{job.words} was not measured"
        yield found
