"""What happened, one JSON line an event. The console is a view of it."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seqloom.core.storage import explained, sha256


@dataclass(frozen=True)
class Event:
    """Something that happened at a step.

    kind: tokenise · start · step · evaluate · checkpoint · note · end
    """

    kind: str
    step: int
    data: dict[str, Any] = field(default_factory=dict)


Report = Callable[[Event], None]


class Journal:
    """metrics.jsonl: the truth about a run, and all that plots and tables are made from."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with explained(path):
            # Unbuffered: what could not be written is not tried again when the file is closed.
            self.file = path.open("ab", buffering=0)

    def write(self, event: Event) -> None:
        line = {"event": event.kind, "step": event.step, "time": round(time.time(), 3)}
        left = json.dumps(line | event.data, allow_nan=False).encode() + b"\n"
        with explained(self.path):
            while left:
                left = left[self.file.write(left) :]

    def position(self) -> dict[str, Any]:
        """How long it is and its digest, once it is on the disk."""
        with explained(self.path):
            os.fsync(self.file.fileno())
        size = self.path.stat().st_size
        return {"bytes": size, "sha256": sha256(self.path, size)}

    def cut(self, size: int) -> None:
        """Forget what was written after a checkpoint that training goes back to.

        A journal that was damaged and is shorter keeps its whole lines.
        """
        with explained(self.path):
            if self.path.stat().st_size < size:
                size = self.path.read_bytes().rfind(b"\n") + 1
            self.file.truncate(size)

    def close(self) -> None:
        self.file.close()
