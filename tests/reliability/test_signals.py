"""Ctrl-C and SIGTERM: training saves a checkpoint, stops, and resumes bit-identically."""

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seqloom.config.schema.recipe import RunConfig
from seqloom.runs.integrity import run_damage
from seqloom.training import evaluation, loop
from seqloom.training.event_log import Event
from seqloom.training.loop import train
from seqloom.training.signals import SignalState, catch_signals
from support.forking import SharedInteger, run_in_child
from support.tiny_runs import (
    checkpoint_digests,
    read_events,
    read_trainer_state,
    temporary_files,
    tiny_config,
)
from support.trials import count_trials, save_results

TRIALS = count_trials(3, 25)
"""Number of trials per signal, during training steps and during evaluations."""
MAX_SECONDS = 5.0
"""Maximum time from the signal to the end of training."""

PatchTarget = tuple[Any, str]
FUNCTIONS: dict[str, tuple[PatchTarget, int]] = {
    "training": ((loop, "train_step"), 11),
    "evaluation": ((evaluation, "dataset_loss"), 3),
}
"""The function during which the signal arrives, and the number of its calls in this run."""


@pytest.fixture(scope="module")
def config() -> RunConfig:
    return tiny_config("training.averaging={kind='last', count=2}")


@pytest.fixture(scope="module")
def straight(config: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("straight") / "run"
    train(config, folder)
    return folder


def send_signal_in_call(
    patch: pytest.MonkeyPatch, target: PatchTarget, call_number: int, number: int
) -> list[float]:
    """Send a signal when a function is called for the n-th time. Returns the time of the signal."""
    function: Callable[..., Any] = getattr(*target)
    calls: list[float] = []
    sent: list[float] = []

    def interrupted(*arguments: Any, **named: Any) -> Any:
        calls.append(time.monotonic())
        if len(calls) == call_number:
            sent.append(time.monotonic())
            signal.raise_signal(number)
        return function(*arguments, **named)

    patch.setattr(*target, interrupted)
    return sent


@pytest.mark.slow
@pytest.mark.parametrize("where", FUNCTIONS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_training_saves_and_stops_on_a_signal_and_resumes_bit_identically(
    config: RunConfig, straight: Path, tmp_path: Path, where: str, number: signal.Signals
) -> None:
    target, calls = FUNCTIONS[where]
    slowest = 0.0
    for trial in range(TRIALS):
        folder = tmp_path / str(trial)
        call_number = random.Random(f"{where} {number} {trial}").randint(1, calls)
        with pytest.MonkeyPatch.context() as patch:
            sent = send_signal_in_call(patch, target, call_number, number)
            summary = train(config, folder)
        slowest = max(slowest, time.monotonic() - sent[0])
        assert slowest < MAX_SECONDS
        assert (summary.reason, summary.signal) == ("signal", number)
        expected_step = call_number if where == "training" else 4 * call_number
        assert summary.step == read_trainer_state(folder)["step"] == expected_step
        assert read_events(folder)[-1]["reason"] == "signal"
        assert run_damage(folder) == []
        train(config, folder, resume=True)
        assert checkpoint_digests(folder) == checkpoint_digests(straight)
        assert temporary_files(folder) == []
    save_results(
        f"training-signals.{where}-{number.name}",
        signals=TRIALS,
        identical_results=TRIALS,
        slowest_end_seconds=round(slowest, 2),
    )


@pytest.mark.slow
def test_process_exits_after_sigterm(config: RunConfig, tmp_path: Path) -> None:
    step = SharedInteger()

    def work() -> int:
        def stop(event: Event) -> None:
            if event.kind == "checkpoint":
                signal.raise_signal(signal.SIGTERM)

        summary = train(config, tmp_path / "run", report=stop)
        step.set(summary.step)
        return summary.signal or 0

    assert run_in_child(work) == signal.SIGTERM
    # The signal arrived after the checkpoint of step 3, so step 4 was the last.
    assert step.get() == read_trainer_state(tmp_path / "run")["step"] == 4


@pytest.mark.slow
def test_signal_before_the_first_step_ends_the_process(config: RunConfig, tmp_path: Path) -> None:
    def work() -> None:
        def stop(event: Event) -> None:
            if event.kind == "tokenise":
                signal.raise_signal(signal.SIGTERM)

        train(config, tmp_path / "run", report=stop)

    assert run_in_child(work) == -signal.SIGTERM


def test_second_ctrl_c_raises_keyboard_interrupt() -> None:
    state = SignalState()
    state.handle(signal.SIGINT)
    state.handle(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        state.handle(signal.SIGINT)


def test_signal_handlers_are_restored() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with catch_signals():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
