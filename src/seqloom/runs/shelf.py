"""A shelf of numbered folders, one of which is pointed to.

    checkpoints/step-00000500/     each whole and listed in a manifest of its own
    checkpoints/step-00001000/
    latest                         names the last one, moved only when that folder is on the disk

New folders are added, then the pointer moves, then old ones go: at every moment there is
something whole to go back to.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqloom.core.errors import StorageError
from seqloom.core.storage import damage, new_folder, read_manifest, remove_folder, write_file

Fill = Callable[[Path], None]

NOTHING = b"none\n"
"""What the pointer of a shelf says before the first folder is on the disk."""
NAME = re.compile(r"step-(\d+)(?:-(\d+))?")
"""The step, and how often it was saved before."""


@dataclass(frozen=True)
class Shelf:
    folder: Path
    pointer: Path

    def add(self, step: int, fill: Fill, keep: int, **facts: Any) -> Path:
        """Add a folder for this step, point to it, and keep only the newest `keep` up to it.

        Folders of later steps are the remains of a training that had to go back; they go too.
        """
        if self.is_empty():
            # From now on a pointer that is missing is damage, not a shelf that is new.
            write_file(self.pointer, NOTHING)
        place = self._free_place(step)
        with new_folder(place, step=step, **facts) as temporary:
            fill(temporary)
        self.go_back(place)
        for old in self.places()[keep:]:
            remove_folder(old)
        return place

    def go_back(self, place: Path) -> None:
        """Point to this folder and forget those of later steps."""
        write_file(self.pointer, _pointing(place))
        for later in self.places()[: self.places().index(place)]:
            remove_folder(later)

    def _free_place(self, step: int) -> Path:
        """A name not yet taken: nothing that is pointed to is ever overwritten."""
        taken = [number for other, number in map(_numbers, self.places()) if other == step]
        again = f"-{max(taken) + 1}" if taken else ""
        return self.folder / f"step-{step:08d}{again}"

    def pointed_to(self) -> Path | None:
        """The folder that the pointer names, whatever its state; None if nothing was added yet."""
        if self.is_empty():
            return None
        try:
            text = self.pointer.read_bytes()
        except OSError:
            raise StorageError(f"{self.pointer}: is missing, or cannot be read") from None
        if text == NOTHING:
            return None
        place = next((one for one in self.places() if text == _pointing(one)), None)
        if place is None:
            name = text.decode("utf-8", errors="replace").partition(" ")[0].strip()
            raise StorageError(f"{self.pointer}: points to '{name}', which is not there")
        return place

    def current(self) -> Path | None:
        """The folder pointed to, whole; anything less is an error that says all that is wrong."""
        place = self.pointed_to()
        if place is not None and (problems := self.damage(place)):
            raise StorageError("\n".join(problems))
        return place

    def sound(self) -> Iterator[tuple[Path, list[str]]]:
        """Whole folders, the one pointed to first, each with what was wrong with those before."""
        trouble: list[str] = []
        tried: list[Path] = []
        try:
            current = self.current()
            if current is not None:
                yield current, []
                tried.append(current)
        except StorageError as error:
            trouble += str(error).splitlines()
        for place in self.places():
            if place in tried:
                continue
            if problems := self.damage(place):
                trouble += [problem for problem in problems if problem not in trouble]
            else:
                yield place, trouble

    def damage(self, place: Path) -> list[str]:
        """Every way in which a folder of this shelf is not what was put there."""
        problems = damage(place)
        if not problems and read_manifest(place).get("step") != _numbers(place)[0]:
            problems = [f"{place}: holds what belongs to another step"]
        return problems

    def is_empty(self) -> bool:
        """Was nothing ever put here?"""
        return not self.places() and not self.pointer.exists()

    def places(self) -> list[Path]:
        """The folders of this shelf, newest first."""
        named = (path for path in self.folder.glob("step-*") if NAME.fullmatch(path.name))
        return sorted(named, key=_numbers, reverse=True)


def _pointing(place: Path) -> bytes:
    """The name of a folder, with a digest of it: one digit changed could name its neighbour."""
    digest = hashlib.sha256(place.name.encode()).hexdigest()[:16]
    return f"{place.name} {digest}\n".encode()


def _numbers(place: Path) -> tuple[int, int]:
    """Its step, and how often that step was saved before."""
    found = NAME.fullmatch(place.name)
    assert found is not None
    return int(found[1]), int(found[2] or 0)
