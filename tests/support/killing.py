"""Kills a function right before random disk operations, and repeats it."""

import hashlib
import os
import random
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

from support.faults import faulty_disk
from support.forking import SharedInteger, run_in_child


def check_repeated_after_kills(
    write: Callable[[Path], None], folder: Path, kills: int, ignored: str = ""
) -> None:
    """The files that a function writes are the same if it is killed first and then repeated.

    write:   writes files below a new folder. It may keep what an earlier call has written.
    folder:  a folder for the files of all calls
    ignored: the name of files that may differ
    """
    count = SharedInteger()
    straight = new_folder(folder / "straight")

    def count_operations() -> None:
        with faulty_disk(None) as disk:
            write(straight)
        count.set(disk.count)

    assert run_in_child(count_operations) == 0
    expected = digests(straight, ignored)
    assert expected
    for number in range(kills):
        killed = new_folder(folder / "killed")
        fatal = random.Random(number).randrange(count.get())

        def write_until_killed(killed: Path = killed, fatal: int = fatal) -> None:
            with faulty_disk(fatal, lambda: os.kill(os.getpid(), signal.SIGKILL)):
                write(killed)

        assert run_in_child(write_until_killed) == -signal.SIGKILL
        assert run_in_child(partial(write, killed)) == 0
        assert digests(killed, ignored) == expected, f"killed before operation {fatal}"


def new_folder(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def digests(folder: Path, ignored: str) -> dict[str, str]:
    """SHA-256 of all files by their path below the folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ignored
    }
