"""Atomic writes of files and folders, and integrity checks with a manifest.

`atomic_folder` writes a folder under a temporary name beside its final path. It first syncs every
file to disk, then a manifest with the size and SHA-256 of each file, then the folder itself.
Finally it renames the folder to its final name. If the process dies before the rename, a folder
with a temporary name is left over. A folder with the final name is always complete.
"""

import errno
import hashlib
import json
import os
import platform
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from seqloom.core.errors import NotFoundError, StorageError

MANIFEST = "manifest.json"
TEMPORARY_PREFIX = ".tmp-"
RETIRED = f"{TEMPORARY_PREFIX}old-"
"""Prefix of the temporary name that an old folder has while a new folder replaces it."""
MACHINE = re.sub("[^A-Za-z0-9]", "", platform.node())
OWNER = re.compile("([0-9]+)@([A-Za-z0-9]*)")
"""Matches the end of a temporary name: the process that created it, and its machine."""
SCHEMA = 1
"""Version of the format of run folders and of all other folders with a manifest. Increase it when
older versions of seqloom cannot read the new format."""
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


def sha256(path: Path, size: int | None = None) -> str:
    """Return the SHA-256 of a file, or of its first `size` bytes."""
    digest = hashlib.sha256()
    remaining = path.stat().st_size if size is None else size
    with path.open("rb") as file:
        while remaining > 0 and (block := file.read(min(remaining, 1 << 20))):
            digest.update(block)
            remaining -= len(block)
    return digest.hexdigest()


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Convert an OSError in the `with` block to a StorageError that names the path and a remedy."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{path}: cannot be written: {error.strerror or error}{_free_space(path, error)}; "
            f"files that were saved before are unchanged. {_remedy(error)}, then start again."
        ) from error


def _free_space(path: Path, error: OSError) -> str:
    """Return a note with the free disk space if the disk is full; "" for other errors."""
    if error.errno not in DISK_FULL:
        return ""
    try:
        return f" ({shutil.disk_usage(path.parent).free:,} bytes free)"
    except OSError:
        return ""


def _remedy(error: OSError) -> str:
    free_space = error.errno in DISK_FULL
    return "Free disk space or choose another folder" if free_space else "Choose another folder"


def sync(path: Path) -> None:
    """Flush a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents, and sync their entries to the disk."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in reversed(missing):
        sync(folder.parent)


def temporary_path(path: Path, prefix: str = TEMPORARY_PREFIX) -> Path:
    """Return a path beside `path` that only this process uses.

    The name contains the process id. It also contains the name of the machine, because several
    machines can share a file system.
    """
    return path.with_name(f"{prefix}{path.name}-{os.getpid()}@{MACHINE}")


def publish(temporary: Path, path: Path) -> None:
    """Rename a complete file or folder to its final name. The result survives a power failure.

    The contents are synced to the disk before the rename, and the parent folder after it.
    """
    for part in (*temporary.rglob("*"), temporary):
        sync(part)
    os.replace(temporary, path)
    sync(path.parent)


def write_file(path: Path, data: bytes) -> None:
    """Replace a file atomically: readers see the old bytes or the new ones, never a mixture."""
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{path.name}")
    with storage_errors(path):
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError:
            _remove_temporary(temporary)
            raise
        sync(path.parent)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Write a file atomically: yield a temporary path to write, then rename it to `path`.

    Several processes, also on machines with a shared file system, can write the same file. If the
    block raises, the temporary file is removed.
    """
    temporary = temporary_path(path)
    with storage_errors(path):
        try:
            yield temporary
            sync(temporary)
            os.replace(temporary, path)
        finally:
            _remove_temporary(temporary)
        sync(path.parent)


def _serialise_manifest(content: dict[str, Any]) -> bytes:
    """Convert a manifest to JSON and add the digest of its content under the key "seal".

    The digest makes it possible to detect damage to the manifest itself.
    """
    seal = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps({**content, "seal": seal}, indent=2).encode()


def write_manifest(
    folder: Path, listed: Mapping[str, dict[str, Any]] | None = None, **facts: Any
) -> None:
    """Write the manifest of a folder: the size and digest of every file.

    listed: manifest entries of files whose digests are already known. These files are not read
    facts:  further keys and values to store in the manifest
    """
    files = dict(listed or {})
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and path.name != MANIFEST and name not in files:
            files[name] = {"bytes": path.stat().st_size, "sha256": sha256(path)}
    content = {"schema": SCHEMA, "machine": platform.machine(), **facts, "files": files}
    write_file(folder / MANIFEST, _serialise_manifest(content))


def replace_listed_file(folder: Path, name: str, data: bytes) -> None:
    """Replace one file of a folder together with its entry in the manifest.

    While the file is being replaced, its entry describes both the old and the new content, and the
    integrity check accepts either. So the folder passes the check even if the process dies during
    the replacement.
    """
    content = read_manifest(folder)
    entry = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    for stage in ({**content["files"][name], "next": entry}, entry):
        content["files"][name] = stage
        write_file(folder / MANIFEST, _serialise_manifest(content))
        write_file(folder / name, data)


@contextmanager
def atomic_folder(path: Path, **facts: Any) -> Iterator[Path]:
    """Create a folder atomically: yield a temporary folder to fill, then rename it to `path`.

    `facts` are further keys and values to store in the manifest. An existing folder at `path` is
    replaced once the new one is complete. If the block raises, the temporary folder is removed, and
    an existing folder at `path` is kept.
    """
    temporary, retired = temporary_path(path), temporary_path(path, RETIRED)
    with storage_errors(path):
        make_folder(path.parent)
        remove_leftovers_of_ended_processes(path)
        _remove_temporary(temporary)
        _restore_or_remove(retired, path)
        temporary.mkdir()
    try:
        with storage_errors(path):
            yield temporary
            for file in temporary.rglob("*"):
                sync(file)
            write_manifest(temporary, **facts)
            sync(temporary)
            if path.exists():
                os.replace(path, retired)
            os.replace(temporary, path)
            sync(path.parent)
    finally:
        _remove_temporary(temporary)
        _restore_or_remove(retired, path)


def remove_folder(path: Path) -> None:
    """Remove a folder atomically.

    The folder is first renamed to a temporary name and then deleted. If the process dies during
    the deletion, there is no incomplete folder at `path`.
    """
    renamed = temporary_path(path, f"{TEMPORARY_PREFIX}gone-")
    with storage_errors(path):
        os.replace(path, renamed)
    _remove_temporary(renamed)


def _remove_temporary(path: Path) -> None:
    """Remove a temporary file or folder. Errors are ignored: `remove_leftovers` tries again
    later."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _restore_or_remove(retired: Path, path: Path) -> None:
    """Clean up after the old folder at `path` was renamed to `retired`.

    Remove `retired` if a new folder exists at `path`. Otherwise rename `retired` back to `path`.
    """
    if retired.is_dir() and not path.exists():
        with suppress(OSError):
            os.replace(retired, path)
    else:
        _remove_temporary(retired)


def read_format(folder: Path) -> int:
    """Return the format version of a folder. If the manifest cannot be read, return 1.

    Raises a StorageError if a newer version of seqloom wrote the folder.
    """
    path = folder / MANIFEST
    try:
        version = json.loads(path.read_bytes()).get("schema", 1)
    except (OSError, ValueError, AttributeError, RecursionError):
        return 1
    if isinstance(version, int) and version > SCHEMA:
        raise StorageError(
            f"{folder}: was written by a newer version of seqloom (format {version}, this version "
            f"reads up to {SCHEMA}). Upgrade seqloom: pip install --upgrade seqloom"
        )
    return version if isinstance(version, int) else 1


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a folder.

    Raises NotFoundError if the folder has no manifest, and StorageError if the manifest is damaged
    or was written by a newer version of seqloom.
    """
    read_format(folder)
    path = folder / MANIFEST
    if not path.is_file():
        raise NotFoundError(
            f"{folder}: contains no {MANIFEST}, so seqloom did not write this folder"
        )
    try:
        data = path.read_bytes()
        content = json.loads(data)
        del content["seal"]
        valid = data == _serialise_manifest(content) and content.get("schema") == SCHEMA
        valid = valid and _are_file_entries(content["files"])
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        valid = False
    if not valid:
        raise StorageError(
            f"{path}: is damaged, or was written by another version of seqloom; restore the folder "
            "from a copy, or create it again"
        )
    return content


def _are_file_entries(files: Any) -> bool:
    """True if every entry of a manifest has a file size and a digest."""
    return all(
        "\0" not in name and isinstance(state["bytes"], int) and isinstance(state["sha256"], str)
        for name, entry in files.items()
        for state in (entry, entry.get("next", entry))
    )


def find_damage(folder: Path) -> list[str]:
    """Return a message about each file that is missing or differs from its entry in the manifest.

    The list is empty if the folder is intact. Files that the manifest does not list are ignored.
    """
    try:
        files = read_manifest(folder)["files"]
    except (NotFoundError, StorageError) as error:
        return [str(error)]
    problems = [_file_damage(folder, name, entry) for name, entry in files.items()]
    return [problem for problem in problems if problem is not None]


def _file_damage(folder: Path, name: str, entry: dict[str, Any]) -> str | None:
    """Return a message about how a file differs from its manifest entry; None if they agree."""
    path = folder / name
    allowed = [entry, entry.get("next", entry)]
    try:
        if path.is_symlink() or not path.resolve().is_relative_to(folder.resolve()):
            return f"{path}: is a symbolic link, or lies outside the folder"
        if not path.is_file():
            return f"{path}: is missing"
        size = path.stat().st_size
        if size not in [state["bytes"] for state in allowed]:
            return f"{path}: has {size:,} bytes instead of {entry['bytes']:,}"
        if sha256(path) not in [state["sha256"] for state in allowed]:
            return f"{path}: was changed after it was written (its SHA-256 differs)"
    except OSError as error:
        return f"{path}: cannot be read: {error.strerror or error}"
    return None


def remove_leftovers_beside(folder: Path) -> None:
    """Remove the temporary folders that a process left beside this folder when it died.

    If the process died while it replaced the folder, the old folder is moved back. Call this
    function and `remove_leftovers` only from the single process that writes the folder: otherwise
    they remove files that another process is writing.
    """
    for path, _ in _leftovers_beside(folder):
        _remove_leftover(path)


def remove_leftovers_of_ended_processes(path: Path) -> None:
    """Remove the temporary versions of this file or folder that dead processes left beside it.

    Other processes may be writing the same path. The temporary files of running processes and of
    other machines are kept.
    """
    for leftover, owner in _leftovers_beside(path):
        if owner[2] == MACHINE and not _is_running(int(owner[1])):
            _remove_leftover(leftover)


def _leftovers_beside(path: Path) -> list[tuple[Path, re.Match[str]]]:
    """Find the temporary versions of a file or folder.

    The name of a temporary version ends with the process and the machine that created it. Returns
    (path, match) for each version. In the regex match, group 1 is the process id, and group 2 is
    the machine.
    """
    name = f"{re.escape(TEMPORARY_PREFIX)}(?:old-|gone-)?{re.escape(path.name)}"
    leftovers = []
    for each in path.parent.glob(f"{TEMPORARY_PREFIX}*"):
        start, _, end = each.name.rpartition("-")
        if re.fullmatch(name, start) and (owner := OWNER.fullmatch(end)):
            leftovers.append((each, owner))
    return leftovers


def _is_running(process: int) -> bool:
    if os.name == "nt":
        return True  # on Windows, os.kill would send Ctrl-C to the process
    try:
        os.kill(process, 0)  # signal 0 only checks that the process exists
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True  # a process of another user
    return True


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files and folders that a dead process left inside this folder."""
    for path in sorted(folder.rglob(f"{TEMPORARY_PREFIX}*")):
        _remove_leftover(path)


def _remove_leftover(path: Path) -> None:
    """Remove a temporary file or folder.

    A name that starts with `RETIRED` marks the old version of a folder that was being replaced. If
    there is no new version, the old one is not removed but renamed back to its original name.
    """
    name, _, owner = path.name.removeprefix(RETIRED).rpartition("-")
    if path.name.startswith(RETIRED) and name and OWNER.fullmatch(owner):
        _restore_or_remove(path, path.with_name(name))
    else:
        _remove_temporary(path)
