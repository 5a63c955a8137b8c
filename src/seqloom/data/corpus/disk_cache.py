"""Caches folders that are expensive to build. The cache key is a digest of everything that
determines the contents of the folder.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from seqloom.core.errors import NotFoundError, StorageError
from seqloom.core.locks import wait_for_lock
from seqloom.core.storage import (
    MANIFEST,
    TEMPORARY_PREFIX,
    atomic_folder,
    find_damage,
    read_manifest,
    sha256,
    storage_errors,
    sync,
    write_file,
)

STAMPS = "stamps.json"
"""File with the modification time of each file of a folder. If the time and the size of a file are
the same as before, its content is not checked."""

DamageCallback = Callable[[Sequence[str]], None]
"""Called with a line for each file that is damaged or missing, before these files are built again."""


def cache_root() -> Path:
    """Return $XDG_CACHE_HOME/seqloom, or ~/.cache/seqloom."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "seqloom"


def cached_folder(
    kind: str,
    digest: str,
    fill: Callable[[Path], None],
    on_wait: Callable[[], None] = lambda: None,
    on_damage: DamageCallback | None = None,
) -> Path:
    """Return the folder cached under this digest. Build the folder if it is missing or damaged.

    If several processes request the same folder, one builds it and the others wait.

    kind:      subfolder of the cache, such as "vocabularies"
    fill:      writes the files into the given empty folder
    on_wait:   called once if another process builds the folder
    on_damage: called before a damaged folder is built again. If it is None, damage is recognised
               only by the sizes of the files, not by their contents
    """
    folder = cache_root() / kind / digest

    def is_intact() -> bool:
        return is_complete(folder) if on_damage is None else not find_damage(folder)

    if is_intact():
        return folder
    with _locked(folder, on_wait):
        if not is_intact():
            if on_damage is not None and folder.exists():
                on_damage(find_damage(folder))
            # A temporary folder found here was left by a process that died while holding the lock.
            for leftover in folder.parent.glob(f"{TEMPORARY_PREFIX}*{digest}-*"):
                shutil.rmtree(leftover, ignore_errors=True)
            with atomic_folder(folder) as temporary:
                fill(temporary)
    return folder


def resumable_folder(
    kind: str,
    digest: str,
    fill: Callable[[Path], None],
    on_wait: Callable[[], None],
    on_damage: DamageCallback,
) -> Path:
    """Return the folder cached under this digest. Build the files that are missing or have changed.

    Unlike `cached_folder`, this function keeps intact files. If `fill` is interrupted, the next
    call keeps the files that `fill` has written.

    kind:      subfolder of the cache, such as "prepared"
    fill:      writes the missing files into the given folder, then a manifest. Before `fill` is
               called, changed files are removed, together with the subfolders that contain them
    on_wait:   called once if another process builds the folder
    on_damage: called before changed files are built again
    """
    folder = cache_root() / kind / digest
    if not changed_files(folder):
        return folder
    with _locked(folder, on_wait):
        changed = changed_files(folder)
        if changed:
            building = folder.with_name(f".build-{digest}")
            if folder.exists():
                on_damage([str(folder / name) for name in changed])
            try:
                _reuse_intact_files(folder, building, changed)
                building.mkdir(exist_ok=True)
                fill(building)
                _write_stamps(building)
                os.replace(building, folder)
                sync(folder.parent)
            except (OSError, StorageError) as error:
                raise _build_error(building, error) from error
    return folder


def _build_error(folder: Path, error: OSError | StorageError) -> StorageError:
    if isinstance(error, OSError):
        try:
            with storage_errors(folder):
                raise error
        except StorageError as converted:
            error = converted
    return StorageError(
        f"{error} Finished parts of the data are kept. To use another folder for prepared data, set "
        "XDG_CACHE_HOME"
    )


def _reuse_intact_files(folder: Path, building: Path, changed: Sequence[str]) -> None:
    """Rename `folder` to `building`. Then remove its files that cannot be reused.

    The removed files are the changed files, all files in the same subfolders, the manifest, and the
    file of modification times. If `folder` does not exist, do nothing.
    """
    if not folder.exists():
        return
    if building.exists():
        shutil.rmtree(building)
    os.replace(folder, building)
    for name in {Path(name).parts[0] for name in changed} | {MANIFEST, STAMPS}:
        path = building / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _write_stamps(folder: Path) -> None:
    """Store the modification times of the files of a folder."""
    files = read_manifest(folder)["files"]
    stamps = {name: (folder / name).stat().st_mtime_ns for name in files}
    write_file(folder / STAMPS, json.dumps(stamps).encode())


def changed_files(folder: Path) -> list[str]:
    """Return the names of the files of a folder that changed after they were written.

    A file has changed if its size or its digest differs from the manifest. To save time, the
    digest is not computed if the file still has the modification time stored by `_write_stamps`.
    If the manifest is missing or damaged, return only the name of the manifest.
    """
    try:
        files = read_manifest(folder)["files"]
    except (NotFoundError, StorageError):
        return [MANIFEST]
    try:
        stamps = json.loads((folder / STAMPS).read_bytes())
    except (OSError, ValueError):
        stamps = {}
    changed, other_times = [], False
    for name, entry in files.items():
        try:
            status = (folder / name).stat()
            if status.st_size != entry["bytes"]:
                changed.append(name)
            elif status.st_mtime_ns != stamps.get(name):
                other_times = True
                if sha256(folder / name) != entry["sha256"]:
                    changed.append(name)
        except OSError:
            changed.append(name)
    if other_times and not changed:
        # The folder was copied. With the new times, the next start need not read all files.
        with suppress(OSError, StorageError):
            _write_stamps(folder)
    return changed


def is_complete(folder: Path) -> bool:
    """Return whether every file listed in the manifest exists and has the size listed there. The
    contents of the files are not checked."""
    try:
        files = read_manifest(folder)["files"]
        return all((folder / name).stat().st_size == files[name]["bytes"] for name in files)
    except (NotFoundError, StorageError, OSError):
        return False


@contextmanager
def _locked(folder: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Context manager that holds the lock of a folder.

    The operating system releases the lock even if the process is killed.

    on_wait: called once if another process holds the lock
    """
    path = folder.with_name(f".lock-{folder.name}")
    with ExitStack() as stack:
        try:
            stack.enter_context(wait_for_lock(path, on_wait))
        except OSError as error:
            raise StorageError(
                f"{path}: cannot be written: {error.strerror or error}; "
                "set XDG_CACHE_HOME to a writable folder"
            ) from error
        yield
