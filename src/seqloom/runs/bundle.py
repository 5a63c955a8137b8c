"""Bundle: a run folder that works alone, moved anywhere.

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
checked before any of it is used.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from seqloom.config.load import dump, load_recipe
from seqloom.config.run import RunConfig
from seqloom.core.errors import NotFoundError, StorageError
from seqloom.core.storage import MANIFEST, damage, new_folder, read_manifest, sha256
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.runs.shelf import Shelf
from seqloom.runs.weights import assign_weights, read_tensors
from seqloom.tasks.build import load_task
from seqloom.tasks.task import Trainable

CONFIG = "config.toml"
JOURNAL = "metrics.jsonl"
WEIGHTS = "model.safetensors"
TRAINER = "trainer.json"
EVALUATION = "evaluation"

ATTEMPTS = 5
"""How often a folder that changes while it is read is read again."""


@dataclass(frozen=True)
class Bundle:
    """What a run folder holds, ready for use.

    partners: the folders of the other members, if the model is an ensemble
    digest:   SHA-256 of the file of its weights
    """

    folder: Path
    config: RunConfig
    task: Trainable
    model: Model
    partners: tuple[Path, ...] = ()
    digest: str = ""


def weights_shelf(folder: Path) -> Shelf:
    return Shelf(folder / "weights", folder / "best")


def checkpoint_shelf(folder: Path) -> Shelf:
    return Shelf(folder / "checkpoints", folder / "latest")


def create_run(
    folder: Path,
    config: RunConfig,
    task: Trainable,
    facts: Mapping[str, str],
) -> None:
    """Make the folder with everything but weights, all at once.

    facts: what the run will keep to, for its manifest: the digest of the training data, so that it
    never goes on with other data, and how batches are laid out.
    """
    with new_folder(folder, **facts) as temporary:
        (temporary / CONFIG).write_text(dump(config), encoding="utf-8")
        (temporary / "text").mkdir()
        task.save(temporary / "text")


def is_run(folder: Path) -> bool:
    return (folder / CONFIG).is_file() or (folder / MANIFEST).is_file()


def read_setup(folder: Path, settings: Sequence[str] = ()) -> tuple[RunConfig, Trainable]:
    """The recipe and the task of a run, without its weights; settings change the recipe."""
    _refuse_no_run(folder)
    if problems := damage(folder):
        raise damaged_run(folder, problems)
    config = load_recipe(folder / CONFIG, settings).config
    return config, load_task(config.task, folder / "text")


def _refuse_no_run(folder: Path) -> None:
    if not folder.is_dir():
        raise NotFoundError(f"{folder}: there is no such run folder")
    if not is_run(folder):
        raise NotFoundError(
            f"{folder}: is not a run folder (it has no {CONFIG}); give the folder that "
            "`seqloom train` wrote"
        )


def load_bundle(folder: Path, device: torch.device, settings: Sequence[str] = ()) -> Bundle:
    """Check the whole folder, then load it; all damage is reported at once.

    settings: changes to the recipe, "decoding.width=8"; the weights must still fit.
    """
    for _ in range(ATTEMPTS):
        before = _pointed_to(folder)
        try:
            return _load_bundle(folder, device, settings)
        except StorageError:
            # A training that is under way may have moved on while this looked.
            if _pointed_to(folder) == before:
                raise
    return _load_bundle(folder, device, settings)


def _pointed_to(folder: Path) -> list[bytes | None]:
    pointers = (weights_shelf(folder).pointer, checkpoint_shelf(folder).pointer)
    return [pointer.read_bytes() if pointer.is_file() else None for pointer in pointers]


def _load_bundle(folder: Path, device: torch.device, settings: Sequence[str]) -> Bundle:
    _refuse_no_run(folder)
    if problems := run_damage(folder):
        raise damaged_run(folder, problems)
    config, task = read_setup(folder, settings)
    place = weights_shelf(folder).pointed_to()
    if place is None:
        raise NotFoundError(
            f"{folder}: has no weights yet; training has not reached its first evaluation. "
            "Go on with `seqloom train --resume`"
        )
    model = build_model(config.model, task.signature)
    assign_weights(model, read_tensors(place / WEIGHTS), place / WEIGHTS)
    digest = str(read_manifest(place)["files"][WEIGHTS]["sha256"])
    return Bundle(
        folder, config, task, model.to(device).eval().requires_grad_(False), digest=digest
    )


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


def damaged_run(folder: Path, problems: list[str]) -> StorageError:
    listed = "\n".join(f"  {problem}" for problem in problems)
    return StorageError(
        f"{folder}: this run folder is damaged:\n{listed}\nRestore it from a copy, or train again."
    )
