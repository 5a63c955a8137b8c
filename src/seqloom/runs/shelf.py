"""A shelf of numbered folders, one of which is pointed to.

    checkpoints/step-00000500/     each whole and listed in a manifest of its own
    checkpoints/step-00001000/
    latest                         "step-00001000", moved only when that folder is on the disk

New folders are added, then the pointer moves, then old ones go: at every moment there is
something whole to go back to.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqloom.core.errors import StorageError
from seqloom.core.storage import damage, new_folder, write_file

Fill = Callable[[Path], None]


@dataclass(frozen=True)
class Shelf:
    folder: Path
    pointer: Path

    def add(self, step: int, fill: Fill, keep: int, **facts: Any) -> Path:
        """Add a folder for this step, point to it, and keep only the newest `keep`."""
        place = self._free_place(step)
        with new_folder(place, step=step, **facts) as temporary:
            fill(temporary)
        write_file(self.pointer, f"{place.name}\n".encode())
        for old in self._newest_first()[keep:]:
            shutil.rmtree(old, ignore_errors=True)
        return place

    def _free_place(self, step: int) -> Path:
        """A name not yet taken: nothing that is pointed to is ever overwritten."""
        name = f"step-{step:08d}"
        again = len(list(self.folder.glob(f"{name}*")))
        return self.folder / (f"{name}-{again}" if again else name)

    def current(self) -> Path:
        """The folder pointed to, whole; anything less is an error that says all that is wrong."""
        try:
            name = self.pointer.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            raise StorageError(f"{self.pointer}: is missing or damaged") from None
        place = self.folder / name
        if place not in self._newest_first():
            raise StorageError(f"{self.pointer}: points to '{name}', which is not there")
        if problems := damage(place):
            raise StorageError("\n".join(problems))
        return place

    def sound(self) -> Iterator[tuple[Path, list[str]]]:
        """Whole folders, the one pointed to first, each with what was wrong with those before."""
        trouble: list[str] = []
        tried: list[Path] = []
        try:
            place = self.current()
            yield place, []
            tried.append(place)
        except StorageError as error:
            trouble.append(str(error))
        for place in self._newest_first():
            if place in tried:
                continue
            if problems := damage(place):
                trouble += [problem for problem in problems if problem not in trouble]
            else:
                yield place, trouble

    def is_empty(self) -> bool:
        return not self._newest_first() and not self.pointer.exists()

    def _newest_first(self) -> list[Path]:
        return sorted(self.folder.glob("step-*"), reverse=True)
