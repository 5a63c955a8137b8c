"""All that is needed to go on as if nothing had happened."""

import json
from collections.abc import Sequence
from pathlib import Path

import torch

from seqloom.config.load import dump, load_recipe
from seqloom.config.run import RunConfig
from seqloom.core.errors import ConfigError, StorageError
from seqloom.runs.bundle import CONFIG, WEIGHTS, checkpoint_shelf
from seqloom.runs.weights import assign_weights, read_tensors, weights_of, write_tensors
from seqloom.training.optimizer import optimizer_tensors, restore_optimizer
from seqloom.training.session import Session
from seqloom.training.stopping import Progress

KEPT = 2
"""Checkpoints on disk: the newest, and one to fall back to."""

MAY_CHANGE = (
    "training.steps",
    "training.stopping",
    "training.evaluate_every",
    "training.evaluate_examples",
    "training.checkpoint_every",
)
"""What a resumed run may set anew: how long and how often, never what is learned."""


def save_checkpoint(session: Session) -> None:
    """Weights, optimiser, averages, place in the data and in the journal; whole or not at all.

    No state of a random generator is needed: every draw is a function of seed and step.
    """

    def fill(folder: Path) -> None:
        (folder / CONFIG).write_text(dump(session.config), encoding="utf-8")
        write_tensors(folder / WEIGHTS, weights_of(session.model))
        moments = optimizer_tensors(session.optimizer, session.model)
        write_tensors(folder / "optimizer.safetensors", moments)
        write_tensors(folder / "averages.safetensors", session.averager.tensors())
        epoch, index = session.stream.position
        record = {
            "step": session.step,
            "epoch": epoch,
            "index": index,
            "evaluated": session.evaluated,
            "seconds": session.seconds,
            "progress": vars(session.progress),
            "journal": session.journal.position(),
        }
        (folder / "trainer.json").write_text(json.dumps(record, indent=2), encoding="utf-8")

    shelf = checkpoint_shelf(session.folder)
    shelf.add(session.step, fill, KEPT, threads=torch.get_num_threads(), ranks=session.world.size)


def restore_checkpoint(session: Session) -> list[str]:
    """Go back to the newest whole checkpoint; returns what was wrong with newer ones."""
    for place, trouble in checkpoint_shelf(session.folder).sound():
        _refuse_other_config(load_recipe(place / CONFIG).config, session.config, session.folder)
        assign_weights(session.model, read_tensors(place / WEIGHTS), place)
        moments = read_tensors(place / "optimizer.safetensors")
        restore_optimizer(session.optimizer, session.model, moments)
        session.averager.restore(read_tensors(place / "averages.safetensors"))
        record = json.loads((place / "trainer.json").read_bytes())
        session.step = record["step"]
        session.stream.position = (record["epoch"], record["index"])
        session.evaluated = record["evaluated"]
        session.seconds = record["seconds"]
        session.progress = Progress(**record["progress"])
        session.journal.cut(record["journal"]["bytes"])
        return trouble
    if not checkpoint_shelf(session.folder).is_empty():
        raise StorageError(
            f"{session.folder}: no checkpoint is whole, so training cannot go on from any; "
            "restore the folder from a copy, or train again in another"
        )
    return []  # stopped before the first checkpoint: begin at the beginning


def _refuse_other_config(saved: RunConfig, wanted: RunConfig, folder: Path) -> None:
    ours, theirs = _flat(saved.model_dump()), _flat(wanted.model_dump())
    different = [
        f"  {key}: {ours.get(key)!r} in the run, {theirs.get(key)!r} now"
        for key in sorted(ours.keys() | theirs.keys())
        if ours.get(key) != theirs.get(key) and not key.startswith(MAY_CHANGE)
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
