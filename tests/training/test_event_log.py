"""The event log of a run."""

import json
from pathlib import Path

import pytest

from seqloom.training.event_log import Event, EventLog


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    """A log with two events."""
    log = EventLog(tmp_path / "metrics.jsonl")
    log.write(Event("note", 1))
    log.write(Event("note", 2))
    return log


def steps(log: EventLog) -> list[int]:
    return [json.loads(line)["step"] for line in log.path.read_bytes().splitlines()]


def test_truncating_removes_later_events_and_writing_continues_there(log: EventLog) -> None:
    log.truncate(log.path.read_bytes().index(b"\n") + 1)
    log.write(Event("note", 7))
    log.close()
    assert steps(log) == [1, 7]


def test_truncating_a_damaged_log_keeps_its_complete_lines(log: EventLog) -> None:
    size = log.path.stat().st_size
    log.file.truncate(size - 3)
    log.truncate(size)
    log.close()
    assert steps(log) == [1]
