"""A training that is killed at any moment and resumed gives bit-identical results."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from seqloom.config.schema.recipe import RunConfig
from seqloom.runs.integrity import is_run, run_damage
from seqloom.runs.recipe import load_recipe
from seqloom.training import loop
from seqloom.training.event_log import Event
from seqloom.training.loop import train
from seqloom.training.session import Session
from seqloom.training.step import StepResult
from support.faults import faulty_disk
from support.forking import ChildProcess, SharedInteger, run_in_child
from support.tiny_runs import (
    LETTERS,
    checkpoint_digests,
    read_events,
    temporary_files,
    tiny_config,
)
from support.trials import count_trials, save_results

pytestmark = pytest.mark.slow

KILLS_BY_TIME = count_trials(6, 130)
"""Number of kills at a random time."""
KILLS_BY_OPERATION = count_trials(6, 120)
"""Number of kills right before a random disk operation."""
KILLS_OF_FINE_TUNING = count_trials(2, 40)
"""Number of kills of a fine-tuning right before a random disk operation."""
CHECKPOINT_EVERY = 3


@pytest.fixture(scope="module")
def config() -> RunConfig:
    return tiny_config(
        "training.averaging.kind=ema", f"training.checkpoint_every={CHECKPOINT_EVERY}"
    )


class KilledTraining:
    """A training in a child process.

    reached: the last step before the kill
    started: the step from which training started or resumed
    """

    def __init__(self, config: RunConfig, folder: Path) -> None:
        self.config = config
        self.folder = folder
        self.reached = SharedInteger()
        self.started = SharedInteger()

    def train(self) -> None:
        """Start or resume training in this process."""
        with pytest.MonkeyPatch.context() as patch:
            # An empty cache: filling it must be safe to kill, too.
            patch.setenv("XDG_CACHE_HOME", str(self.folder.parent / "cache"))
            take_step = loop.take_step

            def observed_step(session: Session) -> StepResult:
                result = take_step(session)
                self.reached.set(session.step)
                return result

            patch.setattr(loop, "take_step", observed_step)
            train(self.config, self.folder, resume=is_run(self.folder), report=self.on_event)

    def on_event(self, event: Event) -> None:
        if event.kind == "start":
            self.started.set(event.step)

    def finish(self) -> None:
        """Check the folder, then train to the end in a child process."""
        assert not is_run(self.folder) or run_damage(self.folder) == []
        assert run_in_child(self.train) == 0
        assert temporary_files(self.folder) == []


@pytest.fixture(scope="module")
def straight(config: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A run that was not killed, and the seconds that a training takes."""
    folder = tmp_path_factory.mktemp("straight") / "run"
    # In this process, so that forked children have imported everything.
    KilledTraining(config, folder).train()
    start = time.monotonic()
    KilledTraining(config, tmp_path_factory.mktemp("timed") / "run").finish()
    return folder, time.monotonic() - start


def check_resumed(training: KilledTraining, straight: Path) -> None:
    """Finish the training: few steps are repeated, and the results are bit-identical."""
    reached = training.reached.get()
    training.finish()
    assert reached - training.started.get() <= CHECKPOINT_EVERY
    assert checkpoint_digests(training.folder) == checkpoint_digests(straight)
    assert evaluations(training.folder) == evaluations(straight)


def evaluations(folder: Path) -> list[object]:
    """The evaluation events without their times."""
    events = [event for event in read_events(folder) if event["event"] == "evaluate"]
    return [{key: event[key] for key in event if key != "time"} for event in events]


def test_results_are_identical_after_kills_at_random_times(
    config: RunConfig, straight: tuple[Path, float], tmp_path: Path
) -> None:
    folder, seconds = straight
    killed = 0
    for number in range(10 * KILLS_BY_TIME):
        training = KilledTraining(config, tmp_path / str(number) / "run")
        child = ChildProcess(training.train)
        time.sleep(random.Random(number).uniform(0, seconds))
        child.kill()
        code = child.wait()
        assert code in (-signal.SIGKILL, 0)
        if code == 0:
            seconds *= 0.9  # it finished before the kill and does not count
            continue
        check_resumed(training, folder)
        killed += 1
        if killed == KILLS_BY_TIME:
            break
    assert killed == KILLS_BY_TIME, "too many trainings finished before they were killed"
    save_results("kills.training-time", kills=killed, identical_results=killed)


def test_results_are_identical_after_kills_before_random_disk_operations(
    config: RunConfig, straight: tuple[Path, float], tmp_path: Path
) -> None:
    check_kills_before_operations(config, straight[0], tmp_path, KILLS_BY_OPERATION)
    kills = KILLS_BY_OPERATION
    save_results("kills.training-operation", kills=kills, identical_results=kills)


def test_results_of_a_fine_tuning_are_identical_after_kills(
    straight: tuple[Path, float], tmp_path: Path
) -> None:
    copies = {**LETTERS, "task": "copy"}
    data = {"train": {**copies, "examples": 40}, "dev": {**copies, "examples": 4}}
    settings = ["training.steps=6", f"training.checkpoint_every={CHECKPOINT_EVERY}"]
    settings += ["training.evaluate_every=3", "training.freeze=['encoder']"]
    config = load_recipe({"data": data}, settings, parent=straight[0]).config
    KilledTraining(config, tmp_path / "straight" / "run").train()
    folder = tmp_path / "straight" / "run"
    check_kills_before_operations(config, folder, tmp_path, KILLS_OF_FINE_TUNING)
    kills = KILLS_OF_FINE_TUNING
    save_results("kills.fine-tuning", kills=kills, identical_results=kills)


def check_kills_before_operations(
    config: RunConfig, folder: Path, tmp_path: Path, kills: int
) -> None:
    """Kill trainings right before random disk operations, resume them and compare the results.

    folder: a run that was not killed
    """
    count = SharedInteger()

    def count_all_operations() -> None:
        with faulty_disk(None) as disk:
            KilledTraining(config, tmp_path / "counted" / "run").train()
        count.set(disk.count)

    assert run_in_child(count_all_operations) == 0
    for number in range(kills):
        training = KilledTraining(config, tmp_path / str(number) / "run")
        fatal = random.Random(number).randrange(count.get())

        def train_until_killed(training: KilledTraining = training, fatal: int = fatal) -> None:
            with faulty_disk(fatal, lambda: os.kill(os.getpid(), signal.SIGKILL)):
                training.train()

        assert run_in_child(train_until_killed) == -signal.SIGKILL
        check_resumed(training, folder)
