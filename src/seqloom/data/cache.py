"""Things that take long to make and are kept by what they were made from."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from seqloom.core.errors import NotFoundError, StorageError
from seqloom.core.storage import MANIFEST, TEMPORARY_PREFIX, atomic_folder, read_manifest


def cache_root() -> Path:
    """$XDG_CACHE_HOME/seqloom, or ~/.cache/seqloom."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "seqloom"


def cached_folder(kind: str, digest: str, fill: Callable[[Path], None]) -> Path:
    """The folder kept under this digest; filled now if it is not there or is damaged.

    Processes that want the same folder at once wait for the first of them to fill it.
    """
    folder = cache_root() / kind / digest
    if is_whole(folder):
        return folder
    with _alone(folder):
        if not is_whole(folder):
            # Whoever held the lock before and left this behind is dead.
            for leftover in folder.parent.glob(f"{TEMPORARY_PREFIX}*{digest}-*"):
                shutil.rmtree(leftover, ignore_errors=True)
            with atomic_folder(folder) as temporary:
                fill(temporary)
    return folder


def discard(kind: str, digest: str) -> None:
    """Forget what is kept under this digest."""
    folder = cache_root() / kind / digest
    with _alone(folder):
        # The manifest goes first: from then on nobody takes the rest for whole.
        (folder / MANIFEST).unlink(missing_ok=True)


def is_whole(folder: Path) -> bool:
    """A cheap look: every file of the manifest is there in its full size."""
    try:
        files = read_manifest(folder)["files"]
        return all((folder / name).stat().st_size == files[name]["bytes"] for name in files)
    except (NotFoundError, StorageError, OSError):
        return False


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of this folder. It is released when the process ends, however it ends."""
    path = folder.with_name(f".lock-{folder.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    except OSError as error:
        raise StorageError(
            f"{path}: cannot be written: {error.strerror or error}; "
            "set XDG_CACHE_HOME to a folder that can be"
        ) from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
