"""Handling of SIGINT and SIGTERM: training finishes the step, saves a checkpoint and exits."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(Exception):
    """Raised when a signal ends an evaluation. A resumed run repeats the evaluation."""


class SignalState:
    """Stores the number of the last signal received, or None if there was none."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def handle(self, number: int, _: FrameType | None = None) -> None:
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt  # a second Ctrl-C stops at once
        self.signal = number


@contextmanager
def catch_signals() -> Iterator[SignalState]:
    """A context in which SIGINT and SIGTERM are stored instead of ending the process.

    The previous signal handlers are restored when the context ends.
    """
    state = SignalState()
    if threading.current_thread() is not threading.main_thread():
        yield state  # outside the main thread, Python allows no signal handlers
        return
    previous = {
        number: signal.signal(number, state.handle) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield state
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
