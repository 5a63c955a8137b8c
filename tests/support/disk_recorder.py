"""Records which files and folders are on the disk, to find what a power failure would lose.

A file is on the disk with the bytes that it had at its last fsync. A folder is on the disk with the
entries that it had at its last fsync. The recorder compares real contents at these moments, so it
notices every write, whichever library makes it.
"""

import hashlib
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

Content = str | dict[str, int]
"""The digest of a file, or the inode of every entry of a folder."""


@dataclass
class DiskRecorder:
    """The synced contents of files and folders, and the violations of the order of operations.

    calls:      the calls in their order, such as "fsync name" and "rename name"
    violations: what was renamed or removed before something else was on the disk
    """

    calls: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    _synced: dict[int, Content] = field(default_factory=dict)
    _unsynced_renames: list[Path] = field(default_factory=list)

    def record_sync(self, path: Path) -> None:
        self.calls.append(f"fsync {path.name}")
        self._synced[path.stat().st_ino] = read_content(path)
        self._unsynced_renames = [p for p in self._unsynced_renames if p.parent != path]

    def record_rename(self, source: Path, target: Path) -> None:
        """Check everything that the rename makes visible. Called before the rename."""
        self.calls.append(f"rename {target.name}")
        if is_temporary(target):
            if not is_temporary(source):
                self._check_earlier_renames(source)
            return
        self.violations += [f"{path} renamed before fsync" for path in self.unsynced(source)]
        self._check_earlier_renames(target)
        self._unsynced_renames.append(target)

    def record_removal(self, path: Path) -> None:
        """Check that earlier renames are on the disk. Called before the removal."""
        self._synced.pop(path.lstat().st_ino, None)  # a new file can get the same inode
        if not is_temporary(path):
            self.calls.append(f"remove {path.name}")
            self._check_earlier_renames(path)

    def _check_earlier_renames(self, path: Path) -> None:
        self.violations += [
            f"{path} renamed or removed before fsync of the folder of {earlier}"
            for earlier in self._unsynced_renames
        ]

    def unsynced(self, path: Path) -> list[Path]:
        """The files and folders at or below a path that are not completely on the disk."""
        parts = [path, *(path.rglob("*") if path.is_dir() else ())]
        return [part for part in parts if not self._has_content(part)]

    def _has_content(self, path: Path) -> bool:
        synced, now = self._synced.get(path.stat().st_ino), read_content(path)
        if isinstance(synced, dict) and isinstance(now, dict):
            return now.items() <= synced.items()  # a removed entry may reappear
        return synced == now

    def lost(self, path: Path, root: Path) -> list[Path]:
        """What a power failure would lose now: parts of `path`, and entries of folders from `root`
        down to it."""
        chain = [path, *(folder for folder in path.parents if folder.is_relative_to(root))]
        entries = [
            child
            for child, folder in itertools.pairwise(chain)
            if self._entries(folder).get(child.name) != child.stat().st_ino
        ]
        return self.unsynced(path) + entries

    def _entries(self, folder: Path) -> dict[str, int]:
        content = self._synced.get(folder.stat().st_ino)
        return content if isinstance(content, dict) else {}


def read_content(path: Path) -> Content:
    """The current content. Temporary files and locks need not be on the disk."""
    if not path.is_dir():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    entries = (entry for entry in path.iterdir() if not is_temporary(Path(entry.name)))
    return {entry.name: entry.lstat().st_ino for entry in entries}


def is_temporary(path: Path) -> bool:
    return path.suffix == ".lock" or any(
        part.startswith((".tmp-", ".lock-")) for part in path.parts
    )


@contextmanager
def recorded_disk(root: Path) -> Iterator[DiskRecorder]:
    """Record fsync, rename and removal inside the block.

    root: an existing folder; it and its contents are on the disk
    """
    recorder = DiskRecorder()
    for path in (root, *root.rglob("*")):
        recorder.record_sync(path)
    recorder.calls.clear()
    replace, unlink = os.replace, os.unlink

    def recorded_sync(descriptor: int) -> None:
        recorder.record_sync(Path(os.readlink(f"/proc/self/fd/{descriptor}")))

    def recorded_replace(source: Any, target: Any) -> None:
        recorder.record_rename(Path(source), Path(target))
        replace(source, target)

    def recorded_unlink(path: Any, *, dir_fd: int | None = None) -> None:
        folder = Path() if dir_fd is None else Path(os.readlink(f"/proc/self/fd/{dir_fd}"))
        if os.path.lexists(folder / path):
            recorder.record_removal(folder / path)
        unlink(path, dir_fd=dir_fd)

    patches: dict[str, Callable[..., None]] = {
        "fsync": recorded_sync,
        "replace": recorded_replace,
        "rename": recorded_replace,
        "unlink": recorded_unlink,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, function in patches.items():
            patch.setattr(os, name, function)
        yield recorder
