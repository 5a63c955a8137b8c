"""Checkpoints: save and restore everything that a training run needs to resume bit-exactly."""

import json
import platform
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seqloom.config.loading.toml import format_recipe
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import ConfigError, StorageError
from seqloom.core.storage import read_manifest
from seqloom.data.batching.stream import BATCH_RULES
from seqloom.runs.integrity import (
    CONFIG,
    TRAINER,
    WEIGHTS,
    checkpoint_store,
    prefix_damage,
    weights_store,
)
from seqloom.runs.weights import assign_weights, read_tensors, weights_of, write_tensors
from seqloom.training.fine_tuning.start import OPTIMIZER
from seqloom.training.optimizer import optimizer_tensors, restore_optimizer
from seqloom.training.parallel.agreement import flatten_settings
from seqloom.training.session import BestScore, Session

AVERAGES = "averages.safetensors"
SHARDS = "shards"
"""Subfolder of a checkpoint. If the model is sharded, this folder replaces the three files WEIGHTS,
OPTIMIZER and AVERAGES."""

KEPT_CHECKPOINTS = 2
"""Number of checkpoints on disk. The older one is used if the newest one is damaged."""

MAY_CHANGE = (
    "data.folder",
    "data.expected",
    "data.workers",
    "data.parent.folder",
    "data.parent.dev",
    "data.general",
    "training.start.run",
    "text.split_sentences",
    "text.pass_through",
    "training.steps",
    "training.stopping.patience",
    "training.stopping.max_minutes",
    "training.evaluate_every",
    "training.evaluate_examples",
    "training.checkpoint_every",
    "training.parallel",
    "training.activation_checkpointing",
    "training.collective_timeout",
)
"""Settings that a resumed run may change: the data folders, the number of processes that prepare
data, the path of the run that a fine-tuning starts from, the general dev set, settings that only
predictions use, durations and intervals, and how ranks share the work."""


def save_checkpoint(session: Session, is_final: bool = False) -> None:
    """Write a checkpoint. All ranks call this.

    The checkpoint contains the weights, the state of the optimiser and of weight averaging, the
    position in the training data, and the size and digest of the event log. It is written
    atomically. No random state is saved, because random numbers depend only on seed, step and the
    index of the batch in the step.

    is_final: True at the end of training. Then rank 0 writes all tensors, even if the model is
              sharded. In other checkpoints of a sharded model, every rank writes its own part
    """
    model, world = session.model, session.world
    tensors = {
        WEIGHTS: weights_of(model),
        OPTIMIZER: optimizer_tensors(session.optimizer, model),
        AVERAGES: session.averager.tensors(),
    }
    if session.gradients.is_sharded and not is_final:
        _save_shards(session, tensors)
        return
    tensors = {name: session.gradients.whole(group) for name, group in tensors.items()}

    def write(folder: Path) -> None:
        for name, group in tensors.items():
            write_tensors(folder / name, group)

    if world.is_main:
        _add_checkpoint(session, write)


def _save_shards(session: Session, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
    """Write a checkpoint of a sharded model. Each rank writes its part of the tensors to a file.

    Rank 0 also creates the folder and writes the files without tensors, such as the recipe.
    """
    from seqloom.training.parallel.sharding import write_shards

    flat = {f"{name}:{key}": each for name, group in tensors.items() for key, each in group.items()}

    def write(folder: Path) -> None:
        (folder / SHARDS).mkdir()
        session.world.broadcast(folder)
        write_shards(folder / SHARDS, flat)

    if session.world.is_main:
        _add_checkpoint(session, write)
    else:
        write_shards(session.world.broadcast(session.folder) / SHARDS, flat)


def _add_checkpoint(session: Session, write_all_tensors: Callable[[Path], None]) -> None:
    def write(folder: Path) -> None:
        (folder / CONFIG).write_text(format_recipe(session.config), encoding="utf-8")
        write_all_tensors(folder)
        shard, index = session.stream.position
        # These key names of the file format differ from the names in the code: "round" is the
        # shard, "journal" the position in the event log, "progress" the best score.
        record = {
            "step": session.step,
            "round": shard,
            "index": index,
            "evaluated": session.evaluated,
            "seconds": session.seconds,
            "progress": vars(session.best_score),
            "journal": session.event_log.position(),
        }
        (folder / TRAINER).write_text(json.dumps(record, indent=2), encoding="utf-8")

    store = checkpoint_store(session.folder)
    facts = {**_environment(session), "batch_rules": BATCH_RULES}
    store.add(session.step, write, KEPT_CHECKPOINTS, **facts)


def _read_tensors(session: Session, checkpoint: Path) -> dict[str, dict[str, Tensor]]:
    """Return the tensors of a checkpoint by file and name: {file: {name: tensor}}.

    The files are WEIGHTS, OPTIMIZER (the optimiser state) and AVERAGES (the state of weight
    averaging). If the model is sharded, each rank gets only its part of every tensor.
    """
    names = (WEIGHTS, OPTIMIZER, AVERAGES)
    if not (checkpoint / SHARDS).is_dir():
        return {name: session.gradients.shard(read_tensors(checkpoint / name)) for name in names}
    from seqloom.training.parallel.sharding import read_shards

    flat = read_shards(checkpoint / SHARDS, session.model)
    return {
        name: {
            key.removeprefix(f"{name}:"): each
            for key, each in flat.items()
            if key.startswith(f"{name}:")
        }
        for name in names
    }


def restore_checkpoint(session: Session) -> list[str]:
    """Restore the newest intact checkpoint. Remove the events after it from the event log.

    Returns descriptions of the damage found in newer checkpoints and in the event log. If training
    was killed before its first checkpoint, it starts again from the first step.
    """
    store = checkpoint_store(session.folder)
    checkpoint, damage = next(store.intact(), (None, []))
    if checkpoint is None:
        _check_can_start_again(session.folder)
    log_position: dict[str, Any] = {"bytes": 0}
    if checkpoint is not None:
        log_position = _restore(session, checkpoint)
    # Wait here, so that no rank changes the folder before all ranks have read it.
    session.world.barrier()
    if session.world.is_main:
        if checkpoint is not None:
            store.make_current(checkpoint)
            path = session.event_log.path
            damage += prefix_damage(path, log_position["bytes"], log_position["sha256"])
        session.event_log.truncate(log_position["bytes"])
    return damage


def _check_can_start_again(folder: Path) -> None:
    """Raise a StorageError if a run without an intact checkpoint must not start again.

    If its checkpoints are damaged or missing, new weights would replace the trained ones.
    """
    store = checkpoint_store(folder)
    if store.paths():
        raise StorageError(
            f"{folder}: every checkpoint is damaged, so training cannot resume. Restore the folder "
            "from a backup, or train again in another folder"
        )
    if store.pointer_damage() or (store.is_empty() and weights_store(folder).paths()):
        raise StorageError(
            f"{folder}: the checkpoints are missing, so training cannot resume. (Packed runs and "
            f"imported models have none.) Restore {store.folder.name}/ and {store.pointer.name} from "
            f"a backup, or start a new run from these weights: seqloom train RECIPE --from {folder} "
            "--run NEW"
        )


def _restore(session: Session, checkpoint: Path) -> dict[str, Any]:
    """Load a checkpoint into the session.

    Returns the size and digest that the event log had when the checkpoint was written.
    """
    record = json.loads((checkpoint / TRAINER).read_bytes())
    tensors = _read_tensors(session, checkpoint)
    assign_weights(session.model, tensors[WEIGHTS], checkpoint)
    restore_optimizer(session.optimizer, session.model, tensors[OPTIMIZER])
    device = session.world.device
    averages = {name: tensor.to(device) for name, tensor in tensors[AVERAGES].items()}
    session.averager.restore(averages)
    session.step = record["step"]
    session.stream.position = (record["round"], record["index"])
    session.evaluated = record["evaluated"]
    session.saved = (session.step, session.evaluated)
    session.seconds = record["seconds"]
    session.best_score = BestScore(**record["progress"])
    return record["journal"]


def environment_changes(session: Session) -> list[str]:
    """List what has changed since the last checkpoint: the machine type, the number of threads, the
    number of ranks, the precision or the version of torch. Each of these can change how numbers are rounded.
    """
    checkpoint = checkpoint_store(session.folder).current_path()
    if checkpoint is None:
        return []
    before = read_manifest(checkpoint)
    now = {"machine": platform.machine(), **_environment(session)}
    return [
        f"{name}: {before[name]} before, {value} now"
        for name, value in now.items()
        if before.get(name, value) != value
    ]


def has_other_batches(session: Session) -> bool:
    """Return True if the version of seqloom that wrote the last checkpoint forms other batches."""
    checkpoint = checkpoint_store(session.folder).current_path()
    return checkpoint is not None and read_manifest(checkpoint)["batch_rules"] != BATCH_RULES


def _environment(session: Session) -> dict[str, int | str]:
    return {
        "threads": torch.get_num_threads(),
        "ranks": session.world.size,
        "precision": session.precision,
        "torch": torch.__version__,
    }


def check_same_recipe(saved: RunConfig, new: RunConfig, folder: Path) -> None:
    """Raise a ConfigError if the recipe of a resumed run changes a setting that must not change."""
    saved_values, new_values = (flatten_settings(each.model_dump()) for each in (saved, new))
    differences = [
        f"  {key}: {saved_values.get(key)!r} in the run, {new_values.get(key)!r} now"
        for key in sorted(saved_values.keys() | new_values.keys())
        if saved_values.get(key) != new_values.get(key) and not _may_change(key)
    ]
    if differences:
        raise ConfigError(
            f"{folder}: this run was started with a different recipe, so it cannot be resumed with "
            "this one:\n"
            + "\n".join(differences)
            + "\nUse the original recipe (--set changes single settings), or choose another --run folder."
        )


def _may_change(key: str) -> bool:
    """True if a resumed run may change this setting.

    This is the case if `MAY_CHANGE` contains the setting, or the section that it belongs to.
    """
    return any(key == name or key.startswith((f"{name}.", f"{name}[")) for name in MAY_CHANGE)
