"""Turns: everybody does a window, then everybody again; and what the turns say.

A machine's speed drifts by tens of percent within minutes. So only windows of the same round are
compared, and a ratio is told with its spread over the rounds.
"""

import fcntl
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.workers import Broken, Worker


def _say_nothing(text: str) -> None:
    """Nobody is watching."""


@dataclass(frozen=True)
class Plan:
    """How often and for how long everybody is measured.

    lock: a file to lock for every round, where several people measure on one machine
    """

    rounds: int = 3
    seconds: float = 5.0
    tell: Callable[[str], None] = _say_nothing
    lock: Path | None = None

    @contextmanager
    def quiet(self) -> Iterator[None]:
        if self.lock is None:
            yield
            return
        with self.lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


@dataclass(frozen=True)
class Spread:
    """A number over the rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(statistics.median(values), min(values), max(values))


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """How many times faster we are, round by round."""
    return Spread.of([one / other for one, other in zip(ours, theirs, strict=True)])


def open_all(make: Sequence[Callable[[], Worker]], names: Sequence[str]) -> dict[str, Worker | str]:
    """The workers, one after the other; in place of one that does not start, the reason."""
    opened: dict[str, Worker | str] = {}
    for name, maker in zip(names, make, strict=True):
        try:
            worker = maker()
        except Broken as reason:
            opened[name] = str(reason)
            continue
        try:
            worker.wait_until_ready()
            opened[name] = worker
        except Broken as reason:
            opened[name] = str(reason)
            worker.close()
    return opened


def take_turns(
    workers: dict[str, Worker | str], requests: Sequence[dict[str, Any]], plan: Plan
) -> dict[str, list[list[dict[str, Any]]] | str]:
    """name -> answers, [round][request]; or the reason why there are none."""
    answers: dict[str, list[list[dict[str, Any]]] | str] = {
        name: worker if isinstance(worker, str) else [] for name, worker in workers.items()
    }
    for turn in range(plan.rounds):
        # Every other round runs backwards, so that nobody always comes after the same neighbour.
        order = list(workers) if turn % 2 == 0 else list(reversed(workers))
        with plan.quiet():
            for name in order:
                worker, so_far = workers[name], answers[name]
                if isinstance(worker, str) or isinstance(so_far, str):
                    continue
                try:
                    so_far.append([worker.ask(**request) for request in requests])
                    plan.tell(f"round {turn + 1}/{plan.rounds}  {name}")
                except Broken as reason:
                    answers[name] = str(reason)
    return answers
