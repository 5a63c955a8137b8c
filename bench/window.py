"""The worker's side of the conversation: train on request, count, stop, answer, wait.

A peer's own loop is never rewritten. Somewhere in it `step` is called after every optimiser step
and `batch` for every batch taken; when a window is over, `step` answers and does not return before
the next request. So whole training loops take turns on one machine, each with it to itself.
"""

import json
import os
import resource
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class Counts:
    """Real tokens (END included, START not) and the positions computed for them."""

    source_tokens: int = 0
    source_positions: int = 0
    target_tokens: int = 0
    target_positions: int = 0

    def add(self, other: "Counts") -> None:
        self.source_tokens += other.source_tokens
        self.source_positions += other.source_positions
        self.target_tokens += other.target_tokens
        self.target_positions += other.target_positions


class Window:
    """Requests come on stdin as {"seconds": s}, answers go to stdout, a JSON object a line."""

    def __init__(self) -> None:
        # Peers print as they like: their stdout becomes stderr, ours stays the harness's.
        self._answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self._waiting: deque[Counts] = deque()
        self._open(Counts(), 0, 0.0)

    def _open(self, counts: Counts, steps: int, seconds: float) -> None:
        self._counts, self._steps = counts, steps
        self._began, self._seconds = time.perf_counter(), seconds

    def ready(self, **about: Any) -> None:
        """Say what this is, and wait for the first request."""
        self.say({"ready": {"python": sys.version.split()[0], **about}})
        self._wait()

    def batch(self, counts: Counts) -> None:
        """A batch was taken; its step is still to come."""
        self._waiting.append(counts)

    def step(self) -> None:
        """An optimiser step is done (or none has begun yet, if no batch was taken)."""
        if not self._waiting:
            return
        self._counts.add(self._waiting.popleft())
        self._steps += 1
        taken = time.perf_counter() - self._began
        if taken >= self._seconds:
            self.say(
                {
                    "seconds": taken,
                    "steps": self._steps,
                    **asdict(self._counts),
                    "peak_memory_mb": peak_memory_mb(),
                }
            )
            self._wait()

    def say(self, answer: dict[str, Any]) -> None:
        print(json.dumps(answer), file=self._answers, flush=True)

    def _wait(self) -> None:
        line = sys.stdin.readline()
        if not line:
            os._exit(0)  # in the middle of somebody's loop: nothing there is worth unwinding
        self._open(Counts(), 0, json.loads(line)["seconds"])


def peak_memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
