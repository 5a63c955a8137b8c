"""Reads the event log of a run, also while training writes it."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from seqloom.core.errors import NotFoundError
from seqloom.runs.integrity import EVENT_LOG

GROUPS = {"step": "train", "evaluate": "dev"}
"""For each kind of event, the prefix of its scalar names: a step has names such as "train/loss"."""
NOT_SCALARS = {"step", "time", "steps", "seconds_left"}
POLL_SECONDS = 1.0


@dataclass(frozen=True)
class Scalars:
    """The numbers in one event of the log, by names such as "train/loss" and "dev/bleu".

    time: seconds since 1970
    """

    step: int
    time: float
    values: dict[str, float]


def read_scalars(folder: Path, *, follow: bool) -> Iterator[Scalars]:
    """Yield the numeric values (losses, scores, …) of each training step and evaluation.

    They are read from the event log of a run.

    follow: True to wait for new events until training ends

    Raises a NotFoundError if the run has no event log.
    """
    for event in _read_events(folder / EVENT_LOG, follow=follow):
        group = GROUPS.get(event.get("event", ""))
        if group is not None:
            yield Scalars(event["step"], event["time"], _numbers(event, group))


def _numbers(values: dict[str, Any], prefix: str) -> dict[str, float]:
    """Return the numbers of an event of the log, by names such as "dev/loss".

    A number in a nested dictionary has a name such as "dev/general/loss".

    prefix: the first part of all names, for example "dev"
    """
    numbers: dict[str, float] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            numbers |= _numbers(value, f"{prefix}/{name}")
        elif type(value) in (int, float) and name not in NOT_SCALARS:  # a bool is an int, too
            numbers[f"{prefix}/{name}"] = float(value)
    return numbers


def _read_events(path: Path, *, follow: bool) -> Iterator[dict[str, Any]]:
    """Yield the event in each complete line of the log. A last line without a line end is ignored.

    If training is resumed while the log is read, training first removes the events after the
    checkpoint from the file. Then it writes new events of the same steps. The new events are yielded
    too.
    """
    if not path.is_file():
        raise NotFoundError(
            f"{path}: there is no event log. Give a run folder that `seqloom train` wrote."
        )
    known: list[bytes] = []  # the lines that were read, without those that training has removed
    offset = 0  # their size
    while True:
        with path.open("rb") as file:
            while known and not _contains_at(file, offset - len(known[-1]), known[-1]):
                offset -= len(known.pop())
            file.seek(offset)
            content = file.read()
        lines = content[: content.rfind(b"\n") + 1].splitlines(keepends=True)
        known += lines
        offset += sum(map(len, lines))
        events = [json.loads(line) for line in lines]
        yield from events
        has_ended = bool(events) and events[-1].get("event") == "end"
        if not follow or has_ended:
            return
        time.sleep(POLL_SECONDS)


def _contains_at(file: BinaryIO, offset: int, line: bytes) -> bool:
    file.seek(offset)
    return file.read(len(line)) == line
