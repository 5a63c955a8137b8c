"""CheckpointStore: folders numbered by training step, and a file that names the current folder.

    checkpoints/step-00000500/     each with its own manifest
    checkpoints/step-00001000/
    latest                         names the current folder

The file that names the current folder is called the pointer. `add` first writes the new folder,
then changes the pointer, then deletes old folders. If the process is killed at any moment, at least
one intact folder remains.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqloom.core.errors import StorageError
from seqloom.core.storage import (
    atomic_folder,
    find_damage,
    read_manifest,
    remove_folder,
    write_file,
)

EMPTY = b"none\n"
"""Content of the pointer before the first folder is complete."""
COPY_RUN = "Copy the whole run again from its source, or restore it from a backup."
"""Advice in error messages about damaged files of a run."""
NAME = re.compile(r"step-(\d+)(?:-(\d+))?")
"""The name of a folder: the step and, if the step was saved before, the number of earlier saves."""


@dataclass(frozen=True)
class CheckpointStore:
    """Checkpoints on disk.

    folder:  contains one folder `step-…` for each checkpoint
    pointer: file that contains the name of the current `step-…` folder
    """

    folder: Path
    pointer: Path

    def create(self) -> None:
        """Write a pointer that names no folder, if the store has neither a pointer nor a folder.

        Once this file is written, a missing pointer means damage and not a new store.
        """
        if self.is_empty():
            write_file(self.pointer, EMPTY)

    def add(self, step: int, write: Callable[[Path], None], keep: int, **facts: Any) -> Path:
        """Add a checkpoint folder, make it current, and keep only the newest `keep` folders.

        Folders of later steps are also deleted. Such folders exist if the run was resumed from an
        older checkpoint.

        write: function that writes the files of the checkpoint into the given folder
        facts: additional entries of the manifest
        """
        self.create()
        path = self._unused_path(step)
        with atomic_folder(path, step=step, **facts) as temporary:
            write(temporary)
        self.make_current(path)
        for old in self.paths()[keep:]:
            remove_folder(old)
        return path

    def make_current(self, path: Path) -> None:
        """Make this checkpoint folder the current one, and delete the folders of later steps."""
        write_file(self.pointer, _pointer_content(path))
        for later in self.paths()[: self.paths().index(path)]:
            remove_folder(later)

    def _unused_path(self, step: int) -> Path:
        """Return the path of a new folder for a checkpoint of this step.

        If the step was saved before, the name gets a suffix, so that no folder is overwritten.
        """
        repeats = [repeat for saved, repeat in map(_step_and_repeat, self.paths()) if saved == step]
        suffix = f"-{max(repeats) + 1}" if repeats else ""
        return self.folder / f"step-{step:08d}{suffix}"

    def current_path(self) -> Path | None:
        """Return the path of the current checkpoint folder, which the pointer file names.

        Returns None if no checkpoint has been written completely.

        Raises a StorageError if the pointer file is damaged or the folder does not exist. The files
        in the folder are not checked.
        """
        path, problem = self._read_pointer()
        if problem is not None:
            raise StorageError(f"{problem}. {COPY_RUN}")
        return path

    def pointer_damage(self) -> list[str]:
        """List the damage to the pointer file. The list is empty if there is none."""
        _, problem = self._read_pointer()
        return [] if problem is None else [problem]

    def _read_pointer(self) -> tuple[Path | None, str | None]:
        """Return the folder that the pointer file names, and the damage to the pointer file.

        Both are None if no checkpoint has been written completely.
        """
        if self.is_empty():
            return None, None
        try:
            content = self.pointer.read_bytes()
        except OSError:
            return None, f"{self.pointer}: is missing or cannot be read"
        if content == EMPTY:
            return None, None
        path = next((path for path in self.paths() if content == _pointer_content(path)), None)
        if path is not None:
            return path, None
        name = content.decode("utf-8", errors="replace").partition(" ")[0]
        if content == _pointer_content(Path(name)):
            return None, f"{self.pointer}: points to '{name}', which does not exist"
        problem = "has changed since it was written (the digest of the folder name differs)"
        return None, f"{self.pointer}: {problem}"

    def current(self) -> Path | None:
        """Return the current checkpoint folder; None if there is no checkpoint.

        Raises a StorageError that lists all damage if the folder or the pointer file is damaged.
        """
        path, problem = self._read_pointer()
        problems = [] if problem is None else [problem]
        if path is not None:
            problems += self.find_damage(path)
        if problems:
            raise StorageError("\n".join(problems))
        return path

    def intact(self) -> Iterator[tuple[Path, list[str]]]:
        """Yield the intact checkpoint folders: the current one, then the others, newest first.

        Damaged folders are skipped. Each folder comes with a list of messages about the damage
        found so far: to skipped folders, and to the pointer file, which names the current folder.
        """
        problems: list[str] = []
        tried: list[Path] = []
        try:
            current = self.current()
            if current is not None:
                yield current, []
                tried.append(current)
        except StorageError as error:
            problems += str(error).splitlines()
        for path in self.paths():
            if path in tried:
                continue
            if found := self.find_damage(path):
                problems += [problem for problem in found if problem not in problems]
            else:
                yield path, problems

    def find_damage(self, path: Path) -> list[str]:
        """List the damage to a checkpoint folder: how its files differ from its manifest."""
        problems = [
            f"{each}: is a symbolic link; replace it by the folder that it points to"
            for each in (self.folder, path)
            if each.is_symlink()
        ]
        problems = problems or find_damage(path)
        if not problems and read_manifest(path).get("step") != _step_and_repeat(path)[0]:
            problems = [f"{path}: contains the files of another step"]
        return problems

    def is_empty(self) -> bool:
        """True if the store was not created, or if all of its files are missing."""
        return not self.paths() and not self.pointer.exists()

    def paths(self) -> list[Path]:
        """All checkpoint folders, newest first."""
        named = (path for path in self.folder.glob("step-*") if NAME.fullmatch(path.name))
        return sorted(named, key=_step_and_repeat, reverse=True)


def _pointer_content(path: Path) -> bytes:
    """Return the content of a pointer file: the folder name, and a digest to detect corruption."""
    digest = hashlib.sha256(path.name.encode()).hexdigest()[:16]
    return f"{path.name} {digest}\n".encode()


def _step_and_repeat(path: Path) -> tuple[int, int]:
    """Return the numbers in a folder name, for example (500, 2) for step-00000500-2.

    The first number is the training step. The second is the number of earlier saves of this step,
    0 if the name does not contain it.
    """
    match = NAME.fullmatch(path.name)
    assert match is not None
    return int(match[1]), int(match[2] or 0)
