"""Killed at any moment, a training that is resumed ends as if it had never been killed."""

import os
import random
import signal
import time
from pathlib import Path

import pytest
from faults import failing

from forking import CAMPAIGN, Child, Number, in_child
from seqloom.config.schema.recipe import RunConfig
from seqloom.runs.folder.integrity import is_run, run_damage
from seqloom.training import loop
from seqloom.training.event_log import Event
from seqloom.training.loop import train
from seqloom.training.session import Session
from seqloom.training.step import StepResult
from tiny_runs import journal, outcome, recipe, stray

BY_TIME = 13 * CAMPAIGN
"""Kills by another process at a random time."""
BY_OPERATION = 12 * CAMPAIGN
"""Kills right before a random call to the disk: the moments between two of its states."""
INTERVAL = 3


@pytest.fixture(scope="module")
def config() -> RunConfig:
    return recipe("training.averaging.kind=ema", f"training.checkpoint_every={INTERVAL}")


class Trial:
    """A training in a child process, and how far it got."""

    def __init__(self, config: RunConfig, folder: Path) -> None:
        self.config = config
        self.folder = folder
        self.reached = Number()
        self.began = Number()

    def sitting(self) -> None:
        """Train from wherever the folder stands."""
        with pytest.MonkeyPatch.context() as patch:
            # Nothing of a cache that an earlier training filled: that is work to be killed too.
            patch.setenv("XDG_CACHE_HOME", str(self.folder.parent / "cache"))
            take_step = loop.take_step

            def noted(session: Session) -> StepResult:
                result = take_step(session)
                self.reached.set(session.step)
                return result

            patch.setattr(loop, "take_step", noted)
            train(self.config, self.folder, resume=is_run(self.folder), report=self.hear)

    def hear(self, event: Event) -> None:
        if event.kind == "start":
            self.began.set(event.step)

    def finish(self) -> None:
        """Go on to the end, and look at what became of the folder on the way."""
        assert not is_run(self.folder) or run_damage(self.folder) == []
        assert in_child(self.sitting) == 0
        assert stray(self.folder) == []


@pytest.fixture(scope="module")
def straight(config: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """The run that nobody killed, and how long one takes."""
    folder = tmp_path_factory.mktemp("straight") / "run"
    # In this process, so that its children find everything imported.
    Trial(config, folder).sitting()
    start = time.monotonic()
    Trial(config, tmp_path_factory.mktemp("timed") / "run").finish()
    return folder, time.monotonic() - start


def check(trial: Trial, straight: Path) -> None:
    """The rest is done, no more than an interval of it twice, and the end is the same."""
    reached = trial.reached.get()
    trial.finish()
    assert reached - trial.began.get() <= INTERVAL
    assert outcome(trial.folder) == outcome(straight)
    assert _measured(trial.folder) == _measured(straight)


def _measured(folder: Path) -> list[object]:
    """What the journal says, but for times: every evaluation once."""
    lines = [line for line in journal(folder) if line["event"] == "evaluate"]
    return [{key: line[key] for key in line if key != "time"} for line in lines]


def test_killed_at_any_time_a_run_ends_as_if_it_had_not_been(
    config: RunConfig, straight: tuple[Path, float], tmp_path: Path
) -> None:
    folder, seconds = straight
    killed = 0
    for number in range(10 * BY_TIME):
        trial = Trial(config, tmp_path / str(number) / "run")
        child = Child(trial.sitting)
        time.sleep(random.Random(number).uniform(0, seconds))
        child.kill()
        code = child.wait()
        assert code in (-signal.SIGKILL, 0)
        if code == 0:
            seconds *= 0.9  # it had finished before the blow: that one does not count
            continue
        check(trial, folder)
        killed += 1
        if killed == BY_TIME:
            return
    raise AssertionError(f"only {killed} of {BY_TIME} trainings were still there to be killed")


def test_killed_between_any_two_calls_to_the_disk_a_run_ends_as_if_it_had_not_been(
    config: RunConfig, straight: tuple[Path, float], tmp_path: Path
) -> None:
    folder, _ = straight
    count = Number()

    def whole() -> None:
        with failing(None) as disk:
            Trial(config, tmp_path / "whole" / "run").sitting()
        count.set(disk.count)

    assert in_child(whole) == 0
    for number in range(BY_OPERATION):
        trial = Trial(config, tmp_path / str(number) / "run")
        fatal = random.Random(number).randrange(count.get())

        def sitting(trial: Trial = trial, fatal: int = fatal) -> None:
            with failing(fatal, lambda: os.kill(os.getpid(), signal.SIGKILL)):
                trial.sitting()

        assert in_child(sitting) == -signal.SIGKILL
        check(trial, folder)
