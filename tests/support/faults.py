"""Disk faults: the i-th operation on the disk fails, or ends the process."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

Fault = Callable[[], None]
"""Fails an operation: raises an error, or ends the process."""

OPERATIONS = ("open", "fsync", "replace", "mkdir", "unlink", "rmdir")


def os_error(number: int) -> Fault:
    """A fault that raises an OSError with this number."""

    def fail() -> None:
        raise OSError(number, os.strerror(number))

    return fail


def exit_process() -> None:
    os._exit(9)


FAULTS = {"EIO": os_error(errno.EIO), "ENOSPC": os_error(errno.ENOSPC)}


class FaultyDisk:
    """Counts disk operations. The operation with the index `fatal` fails."""

    def __init__(self, fatal: int | None, fault: Fault) -> None:
        self.fatal = fatal
        self.fault = fault
        self.count = 0

    def operation(self) -> None:
        self.count += 1
        if self.count - 1 == self.fatal:
            self.fault()


class FaultyFile:
    """A file opened for writing. Before a fault, half of the data is written."""

    def __init__(self, file: Any, disk: FaultyDisk) -> None:
        self.file = file
        self.disk = disk

    def __enter__(self) -> "FaultyFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def write(self, data: Any) -> int:
        self.file.write(data[: len(data) // 2])
        self.file.flush()
        self.disk.operation()
        written: int = self.file.write(data[len(data) // 2 :])
        return len(data) // 2 + written


@contextmanager
def faulty_disk(fatal: int | None, fault: Fault = exit_process) -> Iterator[FaultyDisk]:
    """Inside the context, the disk operation (open, write, fsync, rename, …) number `fatal` fails.

    fatal: index from 0 on; None only counts operations
    """
    disk = FaultyDisk(fatal, fault)
    open_file = Path.open

    def count(function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            disk.operation()
            return function(*arguments, **named)

        return counted

    def faulty_open(path: Path, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        if not set(mode) & set("wa"):
            return open_file(path, mode, *arguments, **named)
        disk.operation()
        return FaultyFile(open_file(path, mode, *arguments, **named), disk)

    with pytest.MonkeyPatch.context() as patch:
        for name in OPERATIONS:
            patch.setattr(os, name, count(getattr(os, name)))
        patch.setattr(Path, "open", faulty_open)
        yield disk


def count_operations(function: Callable[[], None]) -> int:
    """The number of disk operations of a function."""
    with faulty_disk(None) as disk:
        function()
    return disk.count
