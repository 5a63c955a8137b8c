"""File locks. The operating system releases them if the process dies."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from seqloom.core.errors import StorageError
from seqloom.core.storage import make_folder, storage_errors


def _ignore_waiting() -> None:
    """Do nothing. This is the default of the argument `on_wait` of `wait_for_lock`."""


@contextmanager
def wait_for_lock(path: Path, on_wait: Callable[[], None] = _ignore_waiting) -> Iterator[None]:
    """Hold the lock file `path` during the `with` block. First wait while another process holds it.

    Raises OSError if the file cannot be written. The file stays after the block.

    on_wait: called once if another process holds the lock
    """
    make_folder(path.parent)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        on_wait()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def lock_or_fail(path: Path, problem: str) -> Iterator[None]:
    """Hold the lock file `path` during the `with` block, and remove the file afterwards.

    problem: message of the StorageError that is raised if another process holds the lock
    """
    with storage_errors(path):
        make_folder(path.parent)
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise StorageError(problem) from error
    try:
        yield
    finally:
        # Remove the file while the lock is held. Otherwise another process could lock it first, and
        # a third one could then lock a new file. Windows does not remove files that are open.
        with suppress(OSError):
            path.unlink()
        lock.release()
