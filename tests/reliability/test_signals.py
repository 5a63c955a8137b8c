"""Ctrl-C and SIGTERM: save, leave, and go on later as if nothing had been."""

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forking import CAMPAIGN, Number, in_child
from seqloom.config.schema.recipe import RunConfig
from seqloom.runs.folder.integrity import run_damage
from seqloom.training import evaluation, loop
from seqloom.training.event_log import Event
from seqloom.training.loop import train
from seqloom.training.signals import SignalState, catch_signals
from tiny_runs import journal, outcome, recipe, saved_record, stray

TRIALS = 5 * CAMPAIGN
"""In training and in evaluation each."""
PROMPT = 5.0
"""Seconds within which a training that was asked to stop has left."""

Place = tuple[Any, str]
PLACES: dict[str, tuple[Place, int]] = {
    "training": ((loop, "train_step"), 11),
    # Loss and outputs are measured three times in this run.
    "evaluation": ((evaluation, "summed_loss"), 3),
}


@pytest.fixture(scope="module")
def config() -> RunConfig:
    return recipe("training.averaging={kind='last', count=2}")


@pytest.fixture(scope="module")
def straight(config: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("straight") / "run"
    train(config, folder)
    return folder


def _interrupt(patch: pytest.MonkeyPatch, place: Place, turn: int, number: int) -> list[float]:
    """Send a signal when something is called for the turn-th time; returns when that was."""
    call: Callable[..., Any] = getattr(*place)
    calls: list[float] = []
    sent: list[float] = []

    def interrupted(*arguments: Any, **named: Any) -> Any:
        calls.append(time.monotonic())
        if len(calls) == turn:
            sent.append(time.monotonic())
            signal.raise_signal(number)
        return call(*arguments, **named)

    patch.setattr(*place, interrupted)
    return sent


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_training_saves_leaves_and_can_go_on_bit_by_bit(
    config: RunConfig, straight: Path, tmp_path: Path, where: str, number: signal.Signals
) -> None:
    place, turns = PLACES[where]
    for trial in range((TRIALS + 1) // 2):
        folder = tmp_path / str(trial)
        turn = random.Random(f"{where} {number} {trial}").randint(1, turns)
        with pytest.MonkeyPatch.context() as patch:
            sent = _interrupt(patch, place, turn, number)
            summary = train(config, folder)
        assert time.monotonic() - sent[0] < PROMPT
        assert (summary.reason, summary.signal) == ("signal", number)
        assert summary.step == saved_record(folder)["step"] == (turn if turns == 11 else 4 * turn)
        assert journal(folder)[-1]["reason"] == "signal"
        assert run_damage(folder) == []
        train(config, folder, resume=True)
        assert outcome(folder) == outcome(straight)
        assert stray(folder) == []


def test_a_process_that_is_sent_sigterm_leaves_by_itself(config: RunConfig, tmp_path: Path) -> None:
    step = Number()

    def work() -> int:
        def stop(event: Event) -> None:
            if event.kind == "checkpoint":
                signal.raise_signal(signal.SIGTERM)

        summary = train(config, tmp_path / "run", report=stop)
        step.set(summary.step)
        return summary.signal or 0

    assert in_child(work) == signal.SIGTERM
    # The signal came after the checkpoint of step 3, so step 4 was the last.
    assert step.get() == saved_record(tmp_path / "run")["step"] == 4


def test_before_the_first_step_a_signal_ends_the_process_at_once(
    config: RunConfig, tmp_path: Path
) -> None:
    def work() -> None:
        def stop(event: Event) -> None:
            if event.kind == "tokenise":
                signal.raise_signal(signal.SIGTERM)

        train(config, tmp_path / "run", report=stop)

    assert in_child(work) == -signal.SIGTERM


def test_asked_twice_by_ctrl_c_now_means_now() -> None:
    interruption = SignalState()
    interruption.handle(signal.SIGINT)
    interruption.handle(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        interruption.handle(signal.SIGINT)


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with catch_signals():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
