"""Folders that are either whole or not there, and that know when they were damaged.

A folder is written beside its place under a temporary name; every file is synced to disk, then a
manifest with the size and SHA-256 of each file, then the folder itself; only then is it renamed
into place. Whoever dies half-way leaves a temporary folder, never half a real one.
"""

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seqloom.core.errors import NotFoundError, StorageError

MANIFEST = "manifest.json"
TEMPORARY = ".tmp-"
SCHEMA = 1


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
        try:
            free = f"{shutil.disk_usage(path.parent).free:,} bytes free there"
        except OSError:
            free = "that folder cannot be read"
        raise StorageError(
            f"{path}: cannot be written: {error.strerror or error} ({free}); what was saved "
            "before is untouched. Make room or choose another folder, then start again."
        ) from error


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
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync(path.parent)


def _seal(content: dict[str, Any]) -> str:
    """A digest of the manifest itself, so that damage to it shows too."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_manifest(folder: Path, **facts: Any) -> None:
    """List every file of the folder with its size and digest, beside what else should be known."""
    files = {
        str(path.relative_to(folder)): {"bytes": path.stat().st_size, "sha256": sha256(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST
    }
    content = {"schema": SCHEMA, "machine": platform.machine(), **facts, "files": files}
    content["seal"] = _seal(content)
    write_file(folder / MANIFEST, json.dumps(content, indent=2).encode())


@contextmanager
def new_folder(path: Path, **facts: Any) -> Iterator[Path]:
    """Fill the folder that is yielded; on leaving, it appears at `path`, whole and listed.

    An older folder at `path` is replaced. If the block fails, nothing is left behind.
    """
    temporary = path.with_name(f"{TEMPORARY}{path.name}-{os.getpid()}")
    retired = path.with_name(f"{TEMPORARY}old-{path.name}-{os.getpid()}")
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
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
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(retired, ignore_errors=True)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder, if it is there and unharmed."""
    path = folder / MANIFEST
    if not path.is_file():
        raise NotFoundError(f"{folder}: has no {MANIFEST}, so it was not written by seqloom")
    try:
        content = json.loads(path.read_bytes())
        seal = content.pop("seal")
        sound = seal == _seal(content) and content["schema"] == SCHEMA
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        sound = False
    if not sound:
        raise StorageError(f"{path}: is damaged, or was written by another version of seqloom")
    return content


def damage(folder: Path) -> list[str]:
    """Every way in which a folder differs from its manifest; empty when it is whole."""
    try:
        manifest = read_manifest(folder)
    except (NotFoundError, StorageError) as error:
        return [str(error)]
    problems = []
    root = folder.resolve()
    for name, entry in manifest["files"].items():
        path = folder / name
        if not path.resolve().is_relative_to(root) or path.is_symlink():
            problems.append(f"{path}: leads out of the folder")
        elif not path.is_file():
            problems.append(f"{path}: is missing")
        elif path.stat().st_size < entry["bytes"]:
            problems.append(
                f"{path}: has {path.stat().st_size} bytes where {entry['bytes']} were written"
            )
        elif sha256(path, entry["bytes"]) != entry["sha256"]:
            problems.append(f"{path}: is not what was written (its SHA-256 differs)")
    return problems


def remove_leftovers(folder: Path) -> None:
    """Clear away what a process that died half-way left behind."""
    for path in folder.rglob(f"{TEMPORARY}*"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
