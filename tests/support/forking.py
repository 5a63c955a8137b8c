"""Functions in a forked process, which does not need to import torch again."""

import mmap
import os
import signal
import struct
import time
import traceback
import warnings
from collections.abc import Callable

FAILED = 99
"""Exit code of a child whose function raised an exception."""
TIMEOUT = 120.0
"""Seconds after which a child is killed. This is far more than it needs on a busy machine."""


class ChildProcess:
    """A forked process that runs a function and exits without the parent's clean-up."""

    def __init__(self, function: Callable[[], int | None]) -> None:
        with warnings.catch_warnings():
            # pytest-xdist runs a thread, which the child does not use.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            _run_and_exit(function)

    def kill(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int:
        """The exit code; for a child that a signal killed, minus the signal number."""
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                assert code != FAILED, "the child failed; its traceback is in the captured output"
                return code
            time.sleep(0.002)
        self.kill()
        os.waitpid(self.pid, 0)
        raise AssertionError(f"the child did not exit within {TIMEOUT} s")


def _run_and_exit(function: Callable[[], int | None]) -> None:
    code = FAILED
    try:
        code = function() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def run_in_child(function: Callable[[], int | None]) -> int:
    """Run a function in a forked process. Returns the exit code."""
    return ChildProcess(function).wait()


class SharedInteger:
    """An integer in memory that parent and child share."""

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, 8)

    def set(self, value: int) -> None:
        self.memory[:8] = struct.pack("q", value)

    def get(self) -> int:
        return int(struct.unpack("q", self.memory[:8])[0])
