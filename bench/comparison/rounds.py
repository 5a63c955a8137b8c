"""Alternating rounds: every system gets one time window per round.

The speed of a machine drifts by tens of percent within minutes. Therefore ratios are computed
within a round, and the tables show their median and range over the rounds.
"""

import fcntl
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.comparison.systems import System
from bench.comparison.worker import Worker, WorkerError

Workers = dict[str, Worker | str]
"""The worker of each system, or the reason why it did not start."""
Responses = list[list[dict[str, Any]]]
"""[round][request]"""


def _ignore_message(message: str) -> None:
    pass


@dataclass(frozen=True)
class RoundPlan:
    """How often and for how long each system is measured.

    rounds:  number of rounds
    seconds: length of a time window
    log:     receives progress messages. Default: no messages
    lock:    file to lock during each round, for a machine shared by several benchmarks
    """

    rounds: int = 3
    seconds: float = 5.0
    log: Callable[[str], None] = _ignore_message
    lock: Path | None = None

    @contextmanager
    def locked(self) -> Iterator[None]:
        if self.lock is None:
            yield
            return
        with self.lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


@dataclass(frozen=True)
class Spread:
    """Median and range of a number over the rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def from_values(cls, values: Sequence[float]) -> "Spread":
        return cls(statistics.median(values), min(values), max(values))


def ratio_spread(numerators: Sequence[float], denominators: Sequence[float]) -> Spread:
    """The spread of the ratios of each round."""
    pairs = zip(numerators, denominators, strict=True)
    return Spread.from_values([numerator / denominator for numerator, denominator in pairs])


def start_workers(systems: Sequence[System], arguments: Sequence[str], logs: Path) -> Workers:
    """Start one system after the other."""
    workers: Workers = {}
    for system in systems:
        try:
            worker = Worker(system, [*arguments, *system.arguments], logs)
        except WorkerError as reason:
            workers[system.key] = str(reason)
            continue
        try:
            worker.wait_until_ready()
            workers[system.key] = worker
        except WorkerError as reason:
            workers[system.key] = str(reason)
            worker.close()
    return workers


def close_workers(workers: Workers) -> None:
    for worker in workers.values():
        if isinstance(worker, Worker):
            worker.close()


def require_workers(workers: Workers, systems: Sequence[System]) -> None:
    """Raise WorkerError if one of these systems did not start."""
    for system in systems:
        if isinstance(reason := workers[system.key], str):
            raise WorkerError(f"{system.name}: {reason}")


def run_rounds(
    workers: Workers, requests: Sequence[dict[str, Any]], plan: RoundPlan
) -> dict[str, Responses | str]:
    """The responses of each system, or the reason why there are none."""
    responses: dict[str, Responses | str] = {
        key: worker if isinstance(worker, str) else [] for key, worker in workers.items()
    }
    for number in range(plan.rounds):
        # Every other round runs backwards, so that no system always follows the same one.
        order = list(workers) if number % 2 == 0 else list(reversed(workers))
        with plan.locked():
            for key in order:
                worker, earlier = workers[key], responses[key]
                if isinstance(worker, str) or isinstance(earlier, str):
                    continue
                try:
                    earlier.append([worker.request(**request) for request in requests])
                    plan.log(f"round {number + 1}/{plan.rounds}  {key}")
                except WorkerError as reason:
                    responses[key] = str(reason)
    return responses
