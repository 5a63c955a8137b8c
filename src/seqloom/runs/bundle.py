"""Bundle: a loaded run folder. A run folder is self-contained and can be moved."""

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from seqloom import __version__
from seqloom.config.loading.loader import load_run_recipe
from seqloom.config.loading.toml import format_recipe
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import ConfigError, NotFoundError, StorageError
from seqloom.core.storage import atomic_folder, find_damage, read_format, read_manifest
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.runs.archive import is_extracted, open_run
from seqloom.runs.extensions import (
    extension_changes,
    with_extensions_of_run,
    write_extensions,
)
from seqloom.runs.integrity import (
    CONFIG,
    WEIGHTS,
    check_run,
    checkpoint_store,
    is_run,
    read_pointers,
    weights_store,
)
from seqloom.runs.weights import (
    COPY_OR_VERSION,
    assign_weights,
    limited_size,
    read_tensors,
)
from seqloom.tasks.build import load_task
from seqloom.tasks.task import Task

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 5
"""Maximum number of times that loading a run folder is repeated. Loading is repeated if it fails
and a training run has changed the folder in the meantime. If the last repetition fails as well, its
error is raised."""


@dataclass(frozen=True)
class Bundle:
    """A loaded run folder.

    folder:   the run folder. For an ensemble, the folder of its first member.
    partners: for an ensemble, the folders of the other members
    digest:   SHA-256 of the weights file
    settings: changes to the recipe that were given when the folder was loaded
    """

    folder: Path
    config: RunConfig
    task: Task
    model: Model
    partners: tuple[Path, ...] = ()
    digest: str = ""
    settings: tuple[str, ...] = ()


def create_run(folder: Path, config: RunConfig, task: Task, facts: Mapping[str, str]) -> None:
    """Create a run folder without weights, atomically.

    facts: additional entries of the manifest, such as the digest of the training data. With this
           digest, `seqloom train --resume` can check that the data is unchanged.
    """
    versions = {"seqloom": __version__, "torch": torch.__version__}
    with atomic_folder(folder, **versions, **facts) as temporary:
        (temporary / CONFIG).write_text(format_recipe(config), encoding="utf-8")
        (temporary / "text").mkdir()
        task.save(temporary / "text")
        write_extensions(temporary, config)


def read_setup(folder: Path, settings: Sequence[str] = ()) -> tuple[RunConfig, Task]:
    """Load the recipe and the task of a run, without its weights.

    settings: changes to the recipe, such as "decoding.width=8"
    """
    _check_is_run(folder)
    if problems := find_damage(folder):
        raise damaged_run_error(folder, problems)
    try:
        config = load_run_recipe(folder / CONFIG, settings).config
    except ConfigError as error:
        raise with_extensions_of_run(error, folder) from error
    return config, load_task(config, folder / "text")


def _check_is_run(folder: Path) -> None:
    if not folder.is_dir():
        raise NotFoundError(f"{folder}: this run folder does not exist")
    if not is_run(folder):
        raise NotFoundError(
            f"{folder}: is not a run folder (it has no {CONFIG}). Give the folder that `seqloom "
            "train` wrote"
        )
    read_format(folder)  # a newer format is not damage


def load_bundle(path: Path, device: torch.device, settings: Sequence[str] = ()) -> Bundle:
    """Check all files of a run folder or of a packed run, then load it.

    If files are damaged, raises one error that lists all of them. Logs a warning about each
    extension whose code has changed since training.

    settings: changes to the recipe, such as "decoding.width=8". The weights must still fit the
              changed model.
    """
    folder = open_run(path)
    for _ in range(MAX_ATTEMPTS):
        before = read_pointers(folder)
        try:
            return _load_bundle(folder, device, settings)
        except StorageError:
            # A training run may have replaced files during the check.
            if read_pointers(folder) == before:
                raise
    return _load_bundle(folder, device, settings)


def _load_bundle(folder: Path, device: torch.device, settings: Sequence[str]) -> Bundle:
    _check_is_run(folder)
    if problems := check_run(folder):
        raise damaged_run_error(folder, problems)
    config, task = read_setup(folder, settings)
    weights = weights_store(folder).current_path()
    if weights is None:
        raise NotFoundError(
            f"{folder}: has no weights yet, because training has not reached its first evaluation. "
            f"Continue it with `seqloom train {folder} --resume`"
        )
    path = weights / WEIGHTS
    tensors = read_tensors(path)
    remedy = "Change only settings that keep the weights valid, such as attention.selection."
    try:
        with limited_size(tensors, path, remedy if settings else COPY_OR_VERSION):
            model = build_model(config.model, task.signature)
        assign_weights(model, tensors, path, remedy if settings else COPY_OR_VERSION)
    except StorageError as error:
        if not settings:
            raise
        raise ConfigError(
            f"{folder}: the trained weights do not fit the settings {', '.join(settings)}.\n{error}"
        ) from error
    digest = _weights_digest(weights)
    model.to(device).eval().requires_grad_(False)
    for change in extension_changes(folder, config):
        log.warning("%s: %s", folder, change)
    return Bundle(folder, config, task, model, digest=digest, settings=tuple(settings))


def _weights_digest(weights: Path) -> str:
    return str(read_manifest(weights)["files"][WEIGHTS]["sha256"])


def run_digest(folder: Path) -> str:
    """Return a digest of the recipe, the tokenizers and the best weights of a run folder."""
    weights = weights_store(folder).current_path()
    content = [
        read_manifest(folder)["files"],
        None if weights is None else _weights_digest(weights),
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def damaged_run_error(folder: Path, problems: list[str]) -> StorageError:
    """Build the error for a damaged run folder. Its message says what the user can do."""
    listed = "\n".join(f"  {problem}" for problem in problems)
    store = checkpoint_store(folder)
    only_checkpoints = all(
        problem.startswith((f"{store.folder}/", f"{store.pointer}:")) for problem in problems
    )
    remedy = (
        f"Restore it from a backup. If training is finished, you can instead remove "
        f"{store.folder.name}/ and {store.pointer.name}, which only --resume needs."
        if only_checkpoints
        else "Restore it from a backup, or train again."
    )
    if is_extracted(folder):
        remedy = f"Remove {folder.parent}. The packed run is then extracted again."
    return StorageError(f"{folder}: this run folder is damaged:\n{listed}\n{remedy}")
