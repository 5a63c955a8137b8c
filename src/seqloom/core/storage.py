"""Folders that are either whole or not there, and that know when they were damaged.

A folder is written beside its place under a temporary name; every file is synced to disk, then a
manifest with the size and SHA-256 of each file, then the folder itself; only then is it renamed
into place. Whoever dies half-way leaves a temporary folder, never half a real one.
"""

import errno
import hashlib
import json
import os
import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from seqloom.core.errors import NotFoundError, StorageError

MANIFEST = "manifest.json"
TEMPORARY = ".tmp-"
RETIRED = f"{TEMPORARY}old-"
SCHEMA = 1
FULL = (errno.ENOSPC, errno.EDQUOT)


def sha256(path: Path, size: int | None = None) -> str:
    """Of the whole file, or of its first `size` bytes."""
    digest = hashlib.sha256()
    left = path.stat().st_size if size is None else size
    with path.open("rb") as file:
        while left > 0 and (block := file.read(min(left, 1 << 20))):
            digest.update(block)
            left -= len(block)
    return digest.hexdigest()


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn a failing disk into a sentence that says where and how much."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{path}: cannot be written: {error.strerror or error}{_room(path, error)}; what was "
            f"saved before is untouched. {_remedy(error)}, then start again."
        ) from error


def _room(path: Path, error: OSError) -> str:
    """How much is left, if that is the trouble."""
    if error.errno not in FULL:
        return ""
    try:
        return f" ({shutil.disk_usage(path.parent).free:,} bytes free there)"
    except OSError:
        return ""


def _remedy(error: OSError) -> str:
    return "Make room or choose another folder" if error.errno in FULL else "Choose another folder"


def sync(path: Path) -> None:
    """Wait until a file or folder is on the disk, not only in memory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_file(path: Path, data: bytes) -> None:
    """Replace one file at once: readers see the old bytes or the new, never a mixture."""
    temporary = path.with_name(f"{TEMPORARY}{path.name}")
    with explained(path):
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError:
            _forget(temporary)
            raise
        sync(path.parent)


def _sealed(content: dict[str, Any]) -> bytes:
    """A manifest as it is written: with a digest of itself, so that damage to it shows too."""
    seal = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps({**content, "seal": seal}, indent=2).encode()


def write_manifest(folder: Path, **facts: Any) -> None:
    """List every file of the folder with its size and digest, beside what else should be known."""
    files = {
        str(path.relative_to(folder)): {"bytes": path.stat().st_size, "sha256": sha256(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST
    }
    content = {"schema": SCHEMA, "machine": platform.machine(), **facts, "files": files}
    write_file(folder / MANIFEST, _sealed(content))


def replace_listed(folder: Path, name: str, data: bytes) -> None:
    """Replace one file of a folder together with its line in the manifest.

    In between, the manifest allows the old file and the new one, so that the folder is whole at
    every moment.
    """
    content = read_manifest(folder)
    entry = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    for line in ({**content["files"][name], "next": entry}, entry):
        content["files"][name] = line
        write_file(folder / MANIFEST, _sealed(content))
        write_file(folder / name, data)


@contextmanager
def new_folder(path: Path, **facts: Any) -> Iterator[Path]:
    """Fill the folder that is yielded; on leaving, it appears at `path`, whole and listed.

    An older folder at `path` is replaced; it stays if the new one cannot be finished. If the
    block fails, nothing is left behind.
    """
    temporary = path.with_name(f"{TEMPORARY}{path.name}-{os.getpid()}")
    retired = path.with_name(f"{RETIRED}{path.name}-{os.getpid()}")
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _forget(temporary)
        _bring_back_or_forget(retired, path)
        temporary.mkdir()
    try:
        with explained(path):
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
        _forget(temporary)
        _bring_back_or_forget(retired, path)


def remove_folder(path: Path) -> None:
    """Take a folder away at once: whoever dies half-way leaves a temporary name, not half of it."""
    doomed = path.with_name(f"{TEMPORARY}gone-{path.name}-{os.getpid()}")
    with explained(path):
        os.replace(path, doomed)
    _forget(doomed)


def _forget(path: Path) -> None:
    """Remove what has a temporary name; what cannot be removed now is removed at the next start."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _bring_back_or_forget(retired: Path, path: Path) -> None:
    """An old folder goes only if the new one took its place."""
    if retired.is_dir() and not path.exists():
        with suppress(OSError):
            os.replace(retired, path)
    else:
        _forget(retired)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder, if it is there and unharmed."""
    path = folder / MANIFEST
    if not path.is_file():
        raise NotFoundError(f"{folder}: has no {MANIFEST}, so it was not written by seqloom")
    try:
        data = path.read_bytes()
        content = json.loads(data)
        del content["seal"]
        sound = data == _sealed(content) and content["schema"] == SCHEMA
        sound = sound and _lists(content["files"])
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        sound = False
    if not sound:
        raise StorageError(f"{path}: is damaged, or was written by another version of seqloom")
    return content


def _lists(files: Any) -> bool:
    """Does this say of each file how long it is and what its digest is?"""
    return all(
        "\0" not in name and isinstance(one["bytes"], int) and isinstance(one["sha256"], str)
        for name, entry in files.items()
        for one in (entry, entry.get("next", entry))
    )


def damage(folder: Path) -> list[str]:
    """Every way in which a folder differs from its manifest; empty when it is whole."""
    try:
        files = read_manifest(folder)["files"]
    except (NotFoundError, StorageError) as error:
        return [str(error)]
    problems = [_file_damage(folder, name, entry) for name, entry in files.items()]
    return [problem for problem in problems if problem is not None]


def _file_damage(folder: Path, name: str, entry: dict[str, Any]) -> str | None:
    """What is wrong with one file of a manifest."""
    path = folder / name
    allowed = [entry, entry.get("next", entry)]
    try:
        if path.is_symlink() or not path.resolve().is_relative_to(folder.resolve()):
            return f"{path}: leads out of the folder"
        if not path.is_file():
            return f"{path}: is missing"
        size = path.stat().st_size
        if size not in [one["bytes"] for one in allowed]:
            return f"{path}: has {size:,} bytes where {entry['bytes']:,} were written"
        if sha256(path) not in [one["sha256"] for one in allowed]:
            return f"{path}: is not what was written (its SHA-256 differs)"
    except OSError as error:
        return f"{path}: cannot be read: {error.strerror or error}"
    return None


def remove_leftovers_beside(folder: Path) -> None:
    """Clear away what a process that died while it made or replaced this folder left behind.

    Call this, and the next, only as the folder's one writer: what looks left over must not be
    somebody's work.
    """
    ours = re.compile(rf"{re.escape(TEMPORARY)}(old-|gone-)?{re.escape(folder.name)}-\d+")
    for path in folder.parent.glob(f"{TEMPORARY}*"):
        if ours.fullmatch(path.name):
            _remove_leftover(path)


def remove_leftovers(folder: Path) -> None:
    """Clear away what a process that died while it worked in this folder left behind."""
    for path in sorted(folder.rglob(f"{TEMPORARY}*")):
        _remove_leftover(path)


def _remove_leftover(path: Path) -> None:
    """A folder that had left its place and was not replaced goes back; all else goes."""
    place, _, process = path.name.removeprefix(RETIRED).rpartition("-")
    if path.name.startswith(RETIRED) and place and process.isdigit():
        _bring_back_or_forget(path, path.with_name(place))
    else:
        _forget(path)
