"""Journals of trainings, read while they are written."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seqloom.serving.schema_page import JournalAnswer, State, TrainingLine

JOURNAL = "metrics.jsonl"
MOST = 512 * 1024
"""Bytes that are read at a time."""
TAIL = 64 * 1024
"""Bytes at the end that tell how a training stands."""
QUIET = 180.0
"""Seconds without a line after which nobody seems to be training any more."""


def has_journal(folder: Path) -> bool:
    """Links are not followed: a run folder is whole by itself."""
    path = folder / JOURNAL
    return path.is_file() and not path.is_symlink()


def read_journal(run: str, folder: Path, after: int) -> JournalAnswer:
    """Whole lines from a place on."""
    with (folder / JOURNAL).open("rb") as file:
        size = file.seek(0, 2)
        begin = after if after <= size else 0
        file.seek(begin)
        content = file.read(MOST)
    whole = content[: content.rfind(b"\n") + 1]
    end = begin + len(whole)
    return JournalAnswer(
        run=run,
        begin=begin,
        next=end,
        more=bool(whole) and begin + len(content) < size,
        events=list(_events(whole)),
    )


def describe_training(run: str, folder: Path) -> TrainingLine:
    """By its last lines."""
    with (folder / JOURNAL).open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - TAIL))
        events = list(_events(file.read()))
    last = events[-1] if events else {}
    steps = next((one["steps"] for one in reversed(events) if "steps" in one), None)
    return TrainingLine(
        run=run,
        state=_state(last),
        step=int(last.get("step", 0)),
        steps=steps,
        time=last.get("time"),
    )


def _state(last: dict[str, Any]) -> State:
    if last.get("event") == "end":
        return "ended"
    return "running" if time.time() - last.get("time", 0.0) < QUIET else "silent"


def _events(content: bytes) -> Iterator[dict[str, Any]]:
    """A line that is no event (the rest of one, say, where reading began) is passed over."""
    for line in content.splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found
