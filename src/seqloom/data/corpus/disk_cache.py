"""Caches folders that are expensive to build. The cache key is a digest of everything that
determines the contents of the folder.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from seqloom.core.errors import NotFoundError, StorageError
from seqloom.core.locks import wait_for_lock
from seqloom.core.storage import MANIFEST, TEMPORARY_PREFIX, atomic_folder, read_manifest


def cache_root() -> Path:
    """Return $XDG_CACHE_HOME/seqloom, or ~/.cache/seqloom."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "seqloom"


def cached_folder(kind: str, digest: str, fill: Callable[[Path], None]) -> Path:
    """Return the folder cached under this digest. Build the folder if it is missing or damaged.

    If several processes request the same folder, one builds it and the others wait.

    fill: writes the files into the given empty folder
    """
    folder = cache_root() / kind / digest
    if is_complete(folder):
        return folder
    with _locked(folder):
        if not is_complete(folder):
            # A temporary folder found here was left by a process that died while holding the lock.
            for leftover in folder.parent.glob(f"{TEMPORARY_PREFIX}*{digest}-*"):
                shutil.rmtree(leftover, ignore_errors=True)
            with atomic_folder(folder) as temporary:
                fill(temporary)
    return folder


def discard(kind: str, digest: str) -> None:
    """Invalidate the folder cached under this digest, so that the next request builds it again."""
    folder = cache_root() / kind / digest
    with _locked(folder):
        # A folder without a manifest counts as incomplete.
        (folder / MANIFEST).unlink(missing_ok=True)


def is_complete(folder: Path) -> bool:
    """Return whether every file listed in the manifest exists and has the size listed there. The
    contents of the files are not checked."""
    try:
        files = read_manifest(folder)["files"]
        return all((folder / name).stat().st_size == files[name]["bytes"] for name in files)
    except (NotFoundError, StorageError, OSError):
        return False


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder. The system releases the lock even if the process is killed."""
    path = folder.with_name(f".lock-{folder.name}")
    with ExitStack() as stack:
        try:
            stack.enter_context(wait_for_lock(path))
        except OSError as error:
            raise StorageError(
                f"{path}: cannot be written: {error.strerror or error}; "
                "set XDG_CACHE_HOME to a writable folder"
            ) from error
        yield
