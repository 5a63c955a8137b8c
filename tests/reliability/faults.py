"""The i-th time that something is asked of the disk, it fails."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

Strike = Callable[[], None]
"""Fails an operation: raises, or ends the process."""

OPERATIONS = ("open", "fsync", "replace", "mkdir", "unlink", "rmdir")


def refuse(number: int) -> Strike:
    def strike() -> None:
        raise OSError(number, os.strerror(number))

    return strike


def die() -> None:
    os._exit(9)


FAULTS = {"EIO": refuse(errno.EIO), "ENOSPC": refuse(errno.ENOSPC)}


class Disk:
    """Counts what is asked of it; the `fatal`-th thing fails, and all after it if it is full."""

    def __init__(self, fatal: int | None, strike: Strike) -> None:
        self.fatal = fatal
        self.strike = strike
        self.count = 0

    def asked(self) -> None:
        self.count += 1
        if self.count - 1 == self.fatal:
            self.strike()


class Writer:
    """A file that is being written; half of what is written arrives before a failure."""

    def __init__(self, file: Any, disk: Disk) -> None:
        self.file = file
        self.disk = disk

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def write(self, data: Any) -> int:
        self.file.write(data[: len(data) // 2])
        self.file.flush()
        self.disk.asked()
        written: int = self.file.write(data[len(data) // 2 :])
        return len(data) // 2 + written


@contextmanager
def failing(fatal: int | None, strike: Strike = die) -> Iterator[Disk]:
    """Inside, the fatal-th open, write, fsync, rename, … from 0 on fails. None: all are counted."""
    disk = Disk(fatal, strike)
    open_file = Path.open

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*arguments: Any, **named: Any) -> Any:
            disk.asked()
            return call(*arguments, **named)

        return asked

    def open_counted(path: Path, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        if not set(mode) & set("wa"):
            return open_file(path, mode, *arguments, **named)
        disk.asked()
        return Writer(open_file(path, mode, *arguments, **named), disk)

    with pytest.MonkeyPatch.context() as patch:
        for name in OPERATIONS:
            patch.setattr(os, name, counted(getattr(os, name)))
        patch.setattr(Path, "open", open_counted)
        yield disk


def operations_in(work: Callable[[], None]) -> int:
    """How much the work asks of the disk."""
    with failing(None) as disk:
        work()
    return disk.count
