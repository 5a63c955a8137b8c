"""What lies where in a run folder, and whether all of it is what was written.

    config.toml        the whole recipe, resolved          ┐
    text/              the tokenizers, or a scale          ├ written once, listed in manifest.json
    manifest.json                                          ┘
    weights/step-…/    the best weights so far             ← best
    checkpoints/step-…/  all that training needs to go on  ← latest
    metrics.jsonl      what happened, a line an event
    evaluation/…/      scores and the outputs they are of
    engines/…/         the weights as another engine reads them, made again if damaged
    alignment/         the heads that align words best, of these weights

Every file is covered by a manifest (the journal up to the last checkpoint), and all of it is
checked before any of it is used. Digests need nothing but a core, and torch seconds to be loaded:
so a check may begin early, and go on beside that.
"""

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path

from seqloom.core.errors import StorageError
from seqloom.core.storage import MANIFEST, damage, sha256
from seqloom.runs.shelf import Shelf

CONFIG = "config.toml"
JOURNAL = "metrics.jsonl"
WEIGHTS = "model.safetensors"
TRAINER = "trainer.json"
EVALUATION = "evaluation"

Pointers = tuple[bytes | None, ...]


def weights_shelf(folder: Path) -> Shelf:
    return Shelf(folder / "weights", folder / "best")


def checkpoint_shelf(folder: Path) -> Shelf:
    return Shelf(folder / "checkpoints", folder / "latest")


def is_run(folder: Path) -> bool:
    return (folder / CONFIG).is_file() or (folder / MANIFEST).is_file()


def pointers(folder: Path) -> Pointers:
    """Of both shelves. A training that is under way moves them."""
    places = (weights_shelf(folder).pointer, checkpoint_shelf(folder).pointer)
    return tuple(pointer.read_bytes() if pointer.is_file() else None for pointer in places)


def run_damage(folder: Path) -> list[str]:
    """Everything that differs from what was written, anywhere in the run folder."""
    problems = damage(folder)
    for shelf in (weights_shelf(folder), checkpoint_shelf(folder)):
        problems += [found for place in shelf.places() for found in shelf.damage(place)]
        try:
            shelf.pointed_to()
        except StorageError as error:
            problems.append(str(error))
    for place in sorted((folder / EVALUATION).glob("[!.]*")):
        problems += damage(place)
    return problems + _journal_damage(folder)


def _journal_damage(folder: Path) -> list[str]:
    """Is the journal, up to the last checkpoint, what it was then?"""
    try:
        place = checkpoint_shelf(folder).pointed_to()
        if place is None:
            return []
        record = json.loads((place / TRAINER).read_bytes())["journal"]
        size, digest = int(record["bytes"]), str(record["sha256"])
    except (StorageError, OSError, ValueError, KeyError, TypeError):
        return []  # a damaged checkpoint, which is reported by itself
    return beginning_damage(folder / JOURNAL, size, digest)


def beginning_damage(path: Path, size: int, digest: str) -> list[str]:
    """Does a file that only grows still begin with these bytes?"""
    if not path.is_file():
        return [f"{path}: is missing"]
    if path.stat().st_size < size:
        return [f"{path}: has {path.stat().st_size:,} bytes where {size:,} were written"]
    if sha256(path, size) != digest:
        return [f"{path}: is not what was written (its SHA-256 differs)"]
    return []


@dataclass
class _Check:
    """A check that was begun; `found` is None if it could not be brought to an end."""

    folder: Path
    at: Pointers = ()
    found: list[str] | None = None
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        # Nobody waits for it when the process ends.
        self.thread = threading.Thread(target=self._run, name="checking", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.at = pointers(self.folder)
            self.found = run_damage(self.folder)
        except Exception:  # whoever checks again meets it, and can tell
            self.found = None


_begun: dict[Path, _Check] = {}


def check_early(folder: Path) -> None:
    """Begin to check a folder that will be loaded soon."""
    _begun[folder] = _Check(folder)


def checked(folder: Path) -> list[str]:
    """`run_damage`, as it was found early if that holds still.

    It counts once: who loads a folder again wants to know how it is now. And what a training has
    written in the meantime was not looked at.
    """
    early = _begun.pop(folder, None)
    if early is not None:
        early.thread.join()
        if early.found is not None and early.at == pointers(folder):
            return early.found
    return run_damage(folder)
