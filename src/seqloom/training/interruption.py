"""Ctrl-C and SIGTERM: finish the step, save, leave."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(Exception):
    """Someone asked to stop in the middle of work that can be done again later."""


class Interruption:
    """Remembers which signal asked training to stop, if any."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def ask(self, number: int, _: FrameType | None = None) -> None:
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt  # asked twice: now means now
        self.signal = number


@contextmanager
def heed_signals() -> Iterator[Interruption]:
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption  # only the main thread may set handlers
        return
    before = {
        number: signal.signal(number, interruption.ask)
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
