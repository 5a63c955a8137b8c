"""All that is needed to go on as if nothing had happened."""

import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from seqloom.config.load import dump
from seqloom.config.run import RunConfig
from seqloom.core.errors import ConfigError, StorageError
from seqloom.core.storage import read_manifest
from seqloom.runs.soundness import CONFIG, TRAINER, WEIGHTS, beginning_damage, checkpoint_shelf
from seqloom.runs.weights import assign_weights, read_tensors, weights_of, write_tensors
from seqloom.training.optimizer import optimizer_tensors, restore_optimizer
from seqloom.training.session import Session
from seqloom.training.stopping import Progress

OPTIMIZER = "optimizer.safetensors"
AVERAGES = "averages.safetensors"

KEPT = 2
"""Checkpoints on disk: the newest, and one to fall back to."""

MAY_CHANGE = (
    "data.folder",
    "training.steps",
    "training.stopping.patience",
    "training.stopping.max_minutes",
    "training.evaluate_every",
    "training.evaluate_examples",
    "training.checkpoint_every",
)
"""What a resumed run may set anew: where the data lies, how long and how often, never what is
learned."""


def save_checkpoint(session: Session) -> None:
    """Weights, optimiser, averages, place in the data and in the journal; whole or not at all.

    No state of a random generator is needed: every draw is a function of seed and step.
    """

    def fill(folder: Path) -> None:
        (folder / CONFIG).write_text(dump(session.config), encoding="utf-8")
        write_tensors(folder / WEIGHTS, weights_of(session.model))
        moments = optimizer_tensors(session.optimizer, session.model)
        write_tensors(folder / OPTIMIZER, moments)
        write_tensors(folder / AVERAGES, session.averager.tensors())
        number, index = session.stream.position
        record = {
            "step": session.step,
            "round": number,
            "index": index,
            "evaluated": session.evaluated,
            "seconds": session.seconds,
            "progress": vars(session.progress),
            "journal": session.journal.position(),
        }
        (folder / TRAINER).write_text(json.dumps(record, indent=2), encoding="utf-8")

    shelf = checkpoint_shelf(session.folder)
    shelf.add(session.step, fill, KEPT, **_circumstances(session))


def restore_checkpoint(session: Session) -> list[str]:
    """Go back to the newest whole checkpoint; returns what was wrong on the way there."""
    shelf = checkpoint_shelf(session.folder)
    place, trouble = next(shelf.sound(), (None, []))
    if place is None and shelf.places():
        raise StorageError(
            f"{session.folder}: no checkpoint is whole, so training cannot go on from any; "
            "restore the folder from a copy, or train again in another"
        )
    journal: dict[str, Any] = {"bytes": 0}
    if place is not None:
        journal = _restore(session, place)
    # No rank changes the folder before all have read it.
    session.world.wait()
    if session.world.leads:
        if place is not None:
            shelf.go_back(place)
            path = session.journal.path
            trouble += beginning_damage(path, journal["bytes"], journal["sha256"])
        session.journal.cut(journal["bytes"])
    return trouble


def _restore(session: Session, place: Path) -> dict[str, Any]:
    """Put a whole checkpoint into the session; returns the place in the journal."""
    record = json.loads((place / TRAINER).read_bytes())
    assign_weights(session.model, read_tensors(place / WEIGHTS), place)
    restore_optimizer(session.optimizer, session.model, read_tensors(place / OPTIMIZER))
    device = session.world.device
    averages = read_tensors(place / AVERAGES)
    session.averager.restore({name: tensor.to(device) for name, tensor in averages.items()})
    session.step = record["step"]
    session.stream.position = (record["round"], record["index"])
    session.evaluated = record["evaluated"]
    session.saved = (session.step, session.evaluated)
    session.seconds = record["seconds"]
    session.progress = Progress(**record["progress"])
    return record["journal"]


def changes_since(session: Session) -> list[str]:
    """What about the machine is not as it was, so that sums may come out in another order."""
    place = checkpoint_shelf(session.folder).pointed_to()
    if place is None:
        return []
    then = read_manifest(place)
    now = {"machine": platform.machine(), **_circumstances(session)}
    return [
        f"{what}: {then[what]} then, {value} now"
        for what, value in now.items()
        if then.get(what, value) != value
    ]


def _circumstances(session: Session) -> dict[str, int | str]:
    return {
        "threads": torch.get_num_threads(),
        "ranks": session.world.size,
        "precision": session.precision,
    }


def refuse_other_config(saved: RunConfig, wanted: RunConfig, folder: Path) -> None:
    """A run goes on by the recipe it was started with, but for a few settings."""
    ours, theirs = _flat(saved.model_dump()), _flat(wanted.model_dump())
    different = [
        f"  {key}: {ours.get(key)!r} in the run, {theirs.get(key)!r} now"
        for key in sorted(ours.keys() | theirs.keys())
        if ours.get(key) != theirs.get(key) and key not in MAY_CHANGE
    ]
    if different:
        raise ConfigError(
            f"{folder}: was trained by another recipe, so it cannot be resumed with this one:\n"
            + "\n".join(different)
            + "\nUse the recipe it was started with, or another --run folder."
        )


def _flat(tree: object, path: str = "") -> dict[str, object]:
    if isinstance(tree, dict):
        pairs: Sequence[tuple[str, object]] = [
            (f"{path}.{k}".strip("."), v) for k, v in tree.items()
        ]
    elif isinstance(tree, (list, tuple)):
        pairs = [(f"{path}[{i}]", v) for i, v in enumerate(tree)]
    else:
        return {path: tree}
    flat: dict[str, object] = {}
    for key, value in pairs:
        flat |= _flat(value, key)
    return flat
