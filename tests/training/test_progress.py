"""Progress events: their content, and when they are reported."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from seqloom.core.errors import TrainingError
from seqloom.training import progress
from seqloom.training.distributed import World
from seqloom.training.event_log import Event
from seqloom.training.progress import MAX_DELAY, ProgressMeter
from seqloom.training.session import Session
from seqloom.training.setup import open_session
from seqloom.training.step import StepResult
from support.tiny_runs import tiny_config

STEPS = 60


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds, which tests can change."""
    now = [100.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    world = World(0, 1, torch.device("cpu"))
    config = tiny_config(f"training.steps={STEPS}")
    opened = open_session(config, tmp_path / "run", False, world, lambda event: None)
    yield opened
    opened.stream.close()
    opened.event_log.close()


def take_steps(
    session: Session, meter: ProgressMeter, clock: list[float], steps: int, seconds: float = 0.1
) -> list[tuple[int, Event]]:
    """Add steps with 50 targets each. Returns logged events with the step at that time.

    seconds: time between two steps
    """
    events: list[tuple[int, Event]] = []
    session.log = lambda event: events.append((session.step, event))  # type: ignore[method-assign]
    for _ in range(steps):
        clock[0] += seconds
        session.step += 1
        loss = torch.tensor(float(session.step))
        meter.add(StepResult(loss, 50, torch.tensor(1.0)))
    return events


def test_events_contain_means_and_speed(session: Session, clock: list[float]) -> None:
    meter = ProgressMeter(session)
    events = take_steps(session, meter, clock, 40)
    assert [step for step, _ in events] == [20, 40]
    first, second = (event.data for _, event in events)
    assert first["loss"] == pytest.approx(10.5)
    assert second["loss"] == pytest.approx(30.5)
    assert first["tokens_per_second"] == second["tokens_per_second"] == pytest.approx(500)
    assert second["seconds_left"] == pytest.approx(2.0)


def test_the_speed_includes_the_time_that_a_gpu_needs(session: Session, clock: list[float]) -> None:
    """A GPU may still compute the step when its event is due."""
    meter = ProgressMeter(session)
    meter._is_asynchronous = True
    events = take_steps(session, meter, clock, 19)
    session.step += 1
    meter.add(StepResult(torch.tensor(1.0), 50, torch.tensor(1.0)))
    clock[0] += 8.1  # the GPU needs this time
    meter.flush()
    ((_, event),) = events
    assert event.data["tokens_per_second"] == pytest.approx(20 * 50 / 10)


def test_with_a_gpu_events_are_reported_later(session: Session, clock: list[float]) -> None:
    meter = ProgressMeter(session)
    meter._is_asynchronous = True
    events = take_steps(session, meter, clock, 45, seconds=0.001)
    assert [(step, event.step) for step, event in events] == [(20 + MAX_DELAY, 20)]
    assert events[0][1].data["loss"] == pytest.approx(10.5)
    meter.flush()
    assert events[1][1].step == 40
    assert events[1][1].data["loss"] == pytest.approx(30.5)
    meter.flush()
    assert len(events) == 2


def test_an_evaluation_does_not_count_for_the_speed(session: Session, clock: list[float]) -> None:
    meter = ProgressMeter(session)
    meter._is_asynchronous = True
    events = take_steps(session, meter, clock, 25)
    with meter.paused():
        assert [event.step for _, event in events] == [20], "reported before the evaluation"
        clock[0] += 1000
    events = take_steps(session, meter, clock, 15)
    meter.flush()
    assert events[-1][1].data["tokens_per_second"] == pytest.approx(500, rel=0.5)


def test_an_infinite_loss_before_the_last_step_of_an_interval_is_an_error(
    session: Session, clock: list[float]
) -> None:
    """On a GPU, the steps between two events are not checked one by one."""
    meter = ProgressMeter(session)
    meter._is_asynchronous = True
    take_steps(session, meter, clock, 4, seconds=0.001)
    session.step += 1
    meter.add(StepResult(torch.tensor(float("inf")), 50, torch.tensor(1.0)))
    take_steps(session, meter, clock, 15, seconds=0.001)
    with pytest.raises(TrainingError, match=r"the mean loss is inf\. Lower training\.optimizer"):
        meter.flush()
