"""Reading the event log of a run while training is resumed."""

import json
from pathlib import Path

import pytest

from seqloom.jobs.tracking import journal


def line(step: int, loss: float, kind: str = "step") -> bytes:
    event = {"event": kind, "step": step, "time": step + loss / 100, "loss": loss}
    return json.dumps(event).encode() + b"\n"


NEW = [line(3, 7.25), line(4, 6.5)]


@pytest.mark.parametrize(
    "appended",
    [
        b"",
        NEW[0],
        NEW[0] + NEW[1][:9],
        NEW[0] + NEW[1],
        NEW[0] + NEW[1] + line(5, 5.123456),
    ],
    ids=["nothing", "one line", "part of a line", "the same steps", "more steps"],
)
def test_events_after_the_checkpoint_of_a_resumed_training_are_read(
    appended: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two reads, training removes the events after step 2 and appends new ones."""
    log = tmp_path / "metrics.jsonl"
    kept = line(1, 9.0) + line(2, 8.0)
    log.write_bytes(kept + line(3, 7.0) + line(4, 6.0))
    complete = b"".join([*NEW, line(5, 5.123456), line(5, 0.0, "end")])
    states = iter([kept + appended, kept + complete])
    monkeypatch.setattr(f"{journal.__name__}.time.sleep", lambda _: log.write_bytes(next(states)))
    losses = [each.values["train/loss"] for each in journal.read_scalars(tmp_path, follow=True)]
    assert losses == [9.0, 8.0, 7.0, 6.0, 7.25, 6.5, 5.123456]
