"""Work in a process of its own, without importing torch again."""

import mmap
import os
import signal
import struct
import time
import traceback
import warnings
from collections.abc import Callable

CAMPAIGN = int(os.environ.get("SEQLOOM_CAMPAIGN", "1"))
"""Multiplies how often the tests of reliability try their luck."""

FAILED = 99
PATIENCE = 120.0
"""Seconds after which a process is given up: far more than it needs on a busy machine."""


class Child:
    """A forked process that does some work and ends, without any of its parent's clean-up."""

    def __init__(self, work: Callable[[], int | None]) -> None:
        with warnings.catch_warnings():
            # pytest-xdist has a thread of its own, which the child does without.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            _do(work)

    def kill(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int:
        """Its exit code; minus the signal that killed it."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                assert code != FAILED, "the child failed; its traceback is in the captured output"
                return code
            time.sleep(0.002)
        self.kill()
        os.waitpid(self.pid, 0)
        raise AssertionError(f"the child did not end in {PATIENCE} s")


def _do(work: Callable[[], int | None]) -> None:
    code = FAILED
    try:
        code = work() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def in_child(work: Callable[[], int | None]) -> int:
    """Do some work in a process of its own and wait for its exit code."""
    return Child(work).wait()


class Number:
    """A number that a child and its parent share."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, 8)

    def set(self, value: int) -> None:
        self.memory[:8] = struct.pack("q", value)

    def get(self) -> int:
        return int(struct.unpack("q", self.memory[:8])[0])
