"""The worker's side of the measurement protocol: train for a time window, report counts, wait.

The harness never rewrites the training loop of a peer. A small hook inside the loop calls
`add_batch` for each batch and `finish_step` after each optimiser step. When a time window is over,
`finish_step` sends the counts and blocks until the next request. So complete training loops
alternate on one machine, and only one of them computes at a time.
"""

import json
import os
import resource
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class TokenCounts:
    """Real tokens (with END, without START) and the positions computed for them."""

    source_tokens: int = 0
    source_positions: int = 0
    target_tokens: int = 0
    target_positions: int = 0

    def add(self, other: "TokenCounts") -> None:
        self.source_tokens += other.source_tokens
        self.source_positions += other.source_positions
        self.target_tokens += other.target_tokens
        self.target_positions += other.target_positions


class TimeWindow:
    """Reads requests {"seconds": s} from stdin and writes one JSON object per line to stdout."""

    def __init__(self) -> None:
        # Peers may print to stdout: file descriptor 1 becomes stderr, and the protocol uses a copy
        # of the original.
        self._output = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self._pending: deque[TokenCounts] = deque()
        self._open(0.0)

    def _open(self, seconds: float) -> None:
        self._counts, self._steps = TokenCounts(), 0
        self._start, self._seconds = time.perf_counter(), seconds

    def ready(self, **description: Any) -> None:
        """Send the description of the system and wait for the first request."""
        self._send({"ready": {"python": sys.version.split()[0], **description}})
        self._wait()

    def describe(self, model: Any, version: str, loop: str, batching: str, dropout: str) -> None:
        """Send the description of a system that trains a torch module."""
        import torch

        self.ready(
            version=version,
            torch=torch.__version__,
            threads=torch.get_num_threads(),
            parameters=sum(parameter.numel() for parameter in model.parameters()),
            loop=loop,
            batching=batching,
            dropout=dropout,
        )

    def hook(
        self,
        trainer: type[Any],
        method: str,
        count: Callable[..., TokenCounts],
        describe: Callable[[Any], None],
    ) -> None:
        """Replace a trainer's step method: a new step starts when the previous one is finished.

        count:    counts the tokens of the batch that the method receives
        describe: called with the trainer before the first step
        """
        original = getattr(trainer, method)
        started = False

        def step(instance: Any, batch: Any, *rest: Any, **more: Any) -> Any:
            nonlocal started
            if not started:
                started = True
                describe(instance)
            self.finish_step()
            self.add_batch(count(instance, batch))
            return original(instance, batch, *rest, **more)

        setattr(trainer, method, step)

    def add_batch(self, counts: TokenCounts) -> None:
        """Register a batch whose optimiser step follows."""
        self._pending.append(counts)

    def finish_step(self) -> None:
        """Register the end of an optimiser step. Does nothing before the first batch."""
        if not self._pending:
            return
        self._counts.add(self._pending.popleft())
        self._steps += 1
        elapsed = time.perf_counter() - self._start
        if elapsed >= self._seconds:
            self._send(
                {
                    "seconds": elapsed,
                    "steps": self._steps,
                    **asdict(self._counts),
                    "peak_memory_mb": peak_memory_mb(),
                }
            )
            self._wait()

    def _send(self, message: dict[str, Any]) -> None:
        print(json.dumps(message), file=self._output, flush=True)

    def _wait(self) -> None:
        line = sys.stdin.readline()
        if not line:
            os._exit(0)  # inside the peer's loop: skip its exception handlers and clean-up
        self._open(json.loads(line)["seconds"])


def peak_memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def count_onmt_tokens(trainer: Any, batches: list[dict[str, Any]]) -> TokenCounts:
    """Tokens of the only batch of a step of OpenNMT-py or of its successor Eole.

    Its sources have no END. Its targets start with START, which is not counted.
    """
    (batch,) = batches
    # (B, T) or, with features, (B, T, 1 + features)
    source, targets = (
        each[:, :, 0] if each.dim() == 3 else each for each in (batch["src"], batch["tgt"])
    )
    real = int((targets[:, 1:] != trainer.train_loss.padding_idx).sum())
    return TokenCounts(int(batch["srclen"].sum()), source.numel(), real, targets[:, 1:].numel())
