"""File locks exclude other processes and do not outlive their process."""

import fcntl
import signal
import time
from pathlib import Path

import pytest

from seqloom.core.errors import StorageError
from seqloom.core.locks import lock_or_fail, wait_for_lock
from support.forking import ChildProcess, SharedInteger


def test_a_waiting_process_continues_when_the_lock_is_free(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "lock"
    order = SharedInteger()

    def wait() -> None:
        with wait_for_lock(path):
            assert order.get() == 2

    with wait_for_lock(path):
        child = ChildProcess(wait)
        time.sleep(0.1)
        order.set(2)
    assert child.wait() == 0


def test_a_lock_of_another_process_is_an_error_until_that_process_dies(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    held = SharedInteger()

    def hold() -> None:
        with lock_or_fail(path, "taken"):
            held.set(1)
            signal.pause()

    child = ChildProcess(hold)
    while not held.get():
        pass
    try:
        with pytest.raises(StorageError, match="taken"), lock_or_fail(path, "taken"):
            raise AssertionError("two processes hold the lock")
    finally:
        child.kill()
        child.wait()
    with lock_or_fail(path, "taken"):
        assert path.exists()
    assert not path.exists()


def test_a_lock_that_cannot_be_written_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(StorageError, match=r"file.*lock: cannot be written"),
        lock_or_fail(tmp_path / "file" / "lock", "taken"),
    ):
        pass


def test_a_lock_on_a_removed_file_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The previous holder may remove the file after this process has opened it."""
    lock_file = fcntl.flock

    def remove_and_lock(descriptor: int, operation: int) -> None:
        (tmp_path / "lock").unlink(missing_ok=True)
        lock_file(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", remove_and_lock)
    with pytest.raises(StorageError, match="taken"), lock_or_fail(tmp_path / "lock", "taken"):
        raise AssertionError("a lock on a removed file excludes no process")
