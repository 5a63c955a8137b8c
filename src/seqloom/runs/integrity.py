"""The files of a run folder, and the check that they are unchanged.

    config.toml          the resolved recipe                 ┐
    text/                tokenizers, or the scale of numbers ├ written once, listed in manifest.json
    extensions.json      versions of the extensions, if any  │
    manifest.json                                            ┘
    weights/step-…/      the best weights so far             ← best
    checkpoints/step-…/  everything needed to resume         ← latest
    metrics.jsonl        the event log, one JSON object per line
    evaluation/…/        scores and the scored outputs
    engines/…/           weights converted for another engine; rebuilt if damaged
    alignment/           the attention heads that align words best

The file `best` names the current folder in weights/, the file `latest` the current folder in
checkpoints/. Manifests hold the digest of every file. Each checkpoint stores the digest of the
event log at that time. Files are checked before they are used. A check needs no torch, so it can
run in a thread while torch is imported.
"""

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path

from seqloom.core.errors import StorageError
from seqloom.core.storage import MANIFEST, find_damage, sha256
from seqloom.runs.checkpoint_store import CheckpointStore

CONFIG = "config.toml"
EVENT_LOG = "metrics.jsonl"
WEIGHTS = "model.safetensors"
TRAINER = "trainer.json"
EVALUATION = "evaluation"

Pointers = tuple[bytes | None, ...]
"""The contents of the files `best` and `latest`; None for a missing file."""


def weights_store(folder: Path) -> CheckpointStore:
    """Return the `CheckpointStore` that reads and writes the best weights of a run."""
    return CheckpointStore(folder / "weights", folder / "best")


def checkpoint_store(folder: Path) -> CheckpointStore:
    """Return the `CheckpointStore` that reads and writes the checkpoints of a run."""
    return CheckpointStore(folder / "checkpoints", folder / "latest")


def is_run(folder: Path) -> bool:
    """True if the folder has a recipe or a manifest, even if these are damaged."""
    return (folder / CONFIG).is_file() or (folder / MANIFEST).is_file()


def read_pointers(folder: Path) -> Pointers:
    """Return the contents of the files `best` and `latest` of a run folder.

    If two calls return different contents, a training run has saved weights or a checkpoint between
    these calls.
    """
    paths = (weights_store(folder).pointer, checkpoint_store(folder).pointer)
    return tuple(path.read_bytes() if path.is_file() else None for path in paths)


def run_damage(folder: Path) -> list[str]:
    """Compare the files of a run with their digests. Returns all damage found, or an empty list."""
    problems = find_damage(folder)
    for store in (weights_store(folder), checkpoint_store(folder)):
        problems += [problem for path in store.paths() for problem in store.find_damage(path)]
        problems += store.pointer_damage()
    for path in sorted((folder / EVALUATION).glob("[!.]*")):
        problems += find_damage(path)
    return problems + _event_log_damage(folder)


def _event_log_damage(folder: Path) -> list[str]:
    """Check the part of the event log that was written before the current checkpoint.

    The checkpoint stores the digest of this part. Returns the damage found.
    """
    try:
        checkpoint = checkpoint_store(folder).current_path()
        if checkpoint is None:
            return []
        record = json.loads((checkpoint / TRAINER).read_bytes())["journal"]
        size, digest = int(record["bytes"]), str(record["sha256"])
    except (StorageError, OSError, ValueError, KeyError, TypeError):
        return []  # the damaged checkpoint is reported separately
    return prefix_damage(folder / EVENT_LOG, size, digest)


def prefix_damage(path: Path, size: int, digest: str) -> list[str]:
    """List the damage in the first `size` bytes of a file.

    The rest of the file is not checked, because it was appended later.

    digest: SHA-256 of the undamaged bytes
    """
    if not path.is_file():
        return [f"{path}: is missing"]
    if path.stat().st_size < size:
        return [f"{path}: has {path.stat().st_size:,} bytes, expected at least {size:,}"]
    if sha256(path, size) != digest:
        return [f"{path}: has changed since it was written (SHA-256 differs)"]
    return []


@dataclass
class _BackgroundCheck:
    """A check of a run folder in a background thread.

    pointers: the contents of the files `best` and `latest` before the check
    problems: messages about the damage found. None if the check raised an error.
    """

    folder: Path
    pointers: Pointers = ()
    problems: list[str] | None = None
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        # A daemon thread does not keep the process alive at exit.
        self.thread = threading.Thread(target=self._run, name="integrity-check", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.pointers = read_pointers(self.folder)
            self.problems = run_damage(self.folder)
        except Exception:  # `check_run` checks again in the main thread and raises the error
            self.problems = None


_background_checks: dict[Path, _BackgroundCheck] = {}


def start_check(folder: Path) -> None:
    """Start a check of a folder in a background thread. `check_run` returns its result."""
    _background_checks[folder] = _BackgroundCheck(folder)


def check_run(folder: Path) -> list[str]:
    """List all damage to a run folder. The list is empty if there is none.

    If `start_check` has started a check of this folder in the background, this function waits for
    that check and returns its result. Without a background check, this function checks the folder
    itself. It also does so if the background check failed, or if a training run has saved since
    that check started.
    """
    check = _background_checks.pop(folder, None)
    if check is not None:
        check.thread.join()
        if check.problems is not None and check.pointers == read_pointers(folder):
            return check.problems
    return run_damage(folder)
