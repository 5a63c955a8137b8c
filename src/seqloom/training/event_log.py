"""The event log of a run, `metrics.jsonl`: one JSON object per line."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seqloom.core.storage import sha256, storage_errors


@dataclass(frozen=True)
class Event:
    """An event of a training run, for example the result of an evaluation.

    kind: "tokenise", "start", "step", "evaluate", "checkpoint", "note" or "end"
    step: the training step at which it happened
    data: the content of the event, such as losses or scores by name
    """

    kind: str
    step: int
    data: dict[str, Any] = field(default_factory=dict)


EventCallback = Callable[[Event], None]


def note(text: str, step: int = 0) -> Event:
    """Return an event that tells the user something, such as a warning."""
    return Event("note", step, {"text": text})


class EventLog:
    """Appends events to `metrics.jsonl`. All plots and tables of a run are made from this file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with storage_errors(path):
            # Unbuffered: with a buffer, closing the file would repeat a failed write.
            self.file = path.open("ab", buffering=0)

    def write(self, event: Event) -> None:
        line = {"event": event.kind, "step": event.step, "time": round(time.time(), 3)}
        remaining = json.dumps(line | event.data, allow_nan=False).encode() + b"\n"
        with storage_errors(self.path):
            while remaining:
                remaining = remaining[self.file.write(remaining) :]

    def position(self) -> dict[str, Any]:
        """Sync the file to disk. Returns its size and digest, to store in a checkpoint."""
        with storage_errors(self.path):
            os.fsync(self.file.fileno())
        size = self.path.stat().st_size
        return {"bytes": size, "sha256": sha256(self.path, size)}

    def truncate(self, size: int) -> None:
        """Remove the events after the checkpoint that training resumes from.

        size: size of the file at that checkpoint. If the file is shorter, because it is damaged,
              all of its complete lines are kept
        """
        with storage_errors(self.path):
            if self.path.stat().st_size < size:
                size = self.path.read_bytes().rfind(b"\n") + 1
            self.file.truncate(size)

    def close(self) -> None:
        self.file.close()
