"""Bundle: a run folder that works alone, moved anywhere, as `soundness` describes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from seqloom.config.load import dump, load_recipe
from seqloom.config.run import RunConfig
from seqloom.core.errors import NotFoundError, StorageError
from seqloom.core.storage import damage, new_folder, read_manifest
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.runs.soundness import (
    CONFIG,
    WEIGHTS,
    checked,
    checkpoint_shelf,
    is_run,
    pointers,
    weights_shelf,
)
from seqloom.runs.weights import assign_weights, read_tensors
from seqloom.tasks.build import load_task
from seqloom.tasks.task import Task

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
    task: Task
    model: Model
    partners: tuple[Path, ...] = ()
    digest: str = ""


def create_run(
    folder: Path,
    config: RunConfig,
    task: Task,
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


def read_setup(folder: Path, settings: Sequence[str] = ()) -> tuple[RunConfig, Task]:
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
        before = pointers(folder)
        try:
            return _load_bundle(folder, device, settings)
        except StorageError:
            # A training that is under way may have moved on while this looked.
            if pointers(folder) == before:
                raise
    return _load_bundle(folder, device, settings)


def _load_bundle(folder: Path, device: torch.device, settings: Sequence[str]) -> Bundle:
    _refuse_no_run(folder)
    if problems := checked(folder):
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


def damaged_run(folder: Path, problems: list[str]) -> StorageError:
    listed = "\n".join(f"  {problem}" for problem in problems)
    shelf = checkpoint_shelf(folder)
    unused = (f"{shelf.folder}/", f"{shelf.pointer}:")
    way = (
        f"Restore it from a copy; or, if training is over, remove {shelf.folder.name}/ and "
        f"{shelf.pointer.name}, which only --resume needs."
        if all(problem.startswith(unused) for problem in problems)
        else "Restore it from a copy, or train again."
    )
    return StorageError(f"{folder}: this run folder is damaged:\n{listed}\n{way}")
