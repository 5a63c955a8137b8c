"""Saved files stay intact if the disk fails or the process ends at any moment."""

import errno
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from seqloom.config.loading.toml import format_recipe
from seqloom.core.errors import StorageError
from seqloom.core.storage import (
    atomic_folder,
    remove_leftovers,
    remove_leftovers_beside,
    replace_listed_file,
)
from seqloom.inference.run import load
from seqloom.runs.bundle import create_run
from seqloom.runs.integrity import (
    CONFIG,
    EVENT_LOG,
    WEIGHTS,
    is_run,
    run_damage,
    weights_store,
)
from seqloom.runs.weights import weights_of, write_tensors
from seqloom.tasks.build import load_task
from seqloom.training.checkpoint import save_checkpoint
from seqloom.training.distributed import World
from seqloom.training.event_log import Event, EventLog
from seqloom.training.loop import train
from seqloom.training.session import Session
from seqloom.training.setup import open_session
from support.faults import FAULTS, count_operations, exit_process, faulty_disk, os_error
from support.forking import run_in_child
from support.tiny_runs import (
    checkpoint_digests,
    read_events,
    read_trainer_state,
    temporary_files,
    tiny_config,
)
from support.trials import IS_CAMPAIGN, count_trials, save_results

pytestmark = pytest.mark.slow

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two checkpoints, best weights and an evaluation."""
    folder = tmp_path_factory.mktemp("faults") / "run"
    train(tiny_config("training.steps=6", "training.evaluate_every=3"), folder)
    load(folder).evaluate("test", beam=1).save(folder)
    return folder


@pytest.fixture(scope="module")
def session(run: Path) -> Iterator[Session]:
    """A session of the run, one step later."""
    config = tiny_config("training.steps=6", "training.evaluate_every=3")
    session = open_session(config, run, True, World(0, 1, CPU), lambda event: None)
    session.step += 1
    yield session
    session.event_log.close()


@dataclass(frozen=True)
class RunCopy:
    """A copy of the run, and the functions that write into it."""

    session: Session
    folder: Path

    def writer(self, name: str) -> Callable[[], None]:
        writers: dict[str, Callable[[], None]] = {
            "checkpoint": lambda: save_checkpoint(self.session),
            "weights": self.write_weights,
            "recipe": self.write_recipe,
            "report": self.write_report,
            "run": self.create_run,
        }
        return writers[name]

    def write_recipe(self) -> None:
        config = tiny_config("training.steps=99", "training.evaluate_every=3")
        replace_listed_file(self.folder, CONFIG, format_recipe(config).encode())

    def write_weights(self) -> None:
        weights_store(self.folder).add(
            7, lambda folder: write_tensors(folder / WEIGHTS, weights_of(self.session.model)), 1
        )

    def write_report(self) -> None:
        with atomic_folder(self.folder / "evaluation" / "test") as folder:
            (folder / "report.json").write_text("{}")

    def create_run(self) -> None:
        """Create another run beside the copy."""
        folder = self.folder.with_name("other")
        task = load_task(self.session.config, self.folder / "text")
        create_run(folder, self.session.config, task, {"corpus": "", "batching": "padded"})


@pytest.fixture
def copy_run(run: Path, session: Session, tmp_path: Path) -> Iterator[Callable[[], RunCopy]]:
    """A function that returns a fresh copy of the run."""
    event_logs: list[EventLog] = []

    def copy() -> RunCopy:
        folder = tmp_path / "runs" / "run"
        shutil.rmtree(folder.parent, ignore_errors=True)
        shutil.copytree(run, folder)
        session.folder = folder
        session.event_log = EventLog(folder / EVENT_LOG)
        event_logs.append(session.event_log)
        return RunCopy(session, folder)

    original = session.event_log
    yield copy
    session.event_log = original
    for event_log in event_logs:
        event_log.close()


WRITERS = ("checkpoint", "weights", "recipe", "report", "run")
DISK_ERRORS = [
    *((name, "ENOSPC") for name in WRITERS[:4]),
    ("checkpoint", "EIO"),
    *([("run", "ENOSPC"), *((name, "EIO") for name in WRITERS[1:])] if IS_CAMPAIGN else ()),
]
"""What is written, and the error that the disk returns."""


@pytest.mark.parametrize("name", WRITERS[:4])
def test_run_is_intact_after_the_process_ends_at_any_operation(
    copy_run: Callable[[], RunCopy], name: str
) -> None:
    count = count_operations(copy_run().writer(name))
    assert count > 10
    steps = set()
    for fatal in range(count):
        copy = copy_run()
        write = copy.writer(name)

        def write_and_exit(fatal: int = fatal, write: Callable[[], None] = write) -> None:
            with faulty_disk(fatal, exit_process):
                write()

        assert run_in_child(write_and_exit) == 9
        assert run_damage(copy.folder) == []
        steps.add(read_trainer_state(copy.folder)["step"])
        remove_leftovers_beside(copy.folder)
        remove_leftovers(copy.folder)
        assert temporary_files(copy.folder) == []
        assert run_damage(copy.folder) == []
        assert (copy.folder / "evaluation" / "test" / "report.json").is_file()
    assert steps == ({6, 7} if name == "checkpoint" else {6})
    save_results(f"faults.exit-{name}", faults=count, intact=count)


@pytest.mark.parametrize(("name", "fault"), DISK_ERRORS)
def test_run_is_intact_after_a_disk_error_at_any_operation(
    copy_run: Callable[[], RunCopy], name: str, fault: str
) -> None:
    count = count_operations(copy_run().writer(name))
    reported = 0
    for fatal in range(count):
        copy = copy_run()
        write = copy.writer(name)
        error = error_of(write, fatal, fault)
        if error is not None:
            reported += 1
            assert str(copy.folder.parent) in str(error)
            assert "then start again" in str(error)
            assert error.exit_code == 74
        assert run_damage(copy.folder) == []
        other = copy.folder.with_name("other")
        assert not is_run(other) or run_damage(other) == []
        shutil.rmtree(other, ignore_errors=True)
        write()  # succeeds after the fault
        remove_leftovers(copy.folder)
        assert temporary_files(copy.folder) == []
        assert run_damage(copy.folder) == []
    # Only the removal of old files fails silently: the next start repeats it.
    assert reported >= count // 2
    save_results(f"faults.{fault}-{name}", faults=count, intact=count)


def error_of(function: Callable[[], None], fatal: int, fault: str) -> StorageError | None:
    with faulty_disk(fatal, FAULTS[fault]):
        try:
            function()
        except StorageError as error:
            return error
    return None


def test_run_folder_is_created_completely_or_not_at_all(run: Path, tmp_path: Path) -> None:
    config = tiny_config()
    task = load_task(config, run / "text")

    def create(folder: Path) -> None:
        create_run(folder, config, task, {"corpus": "", "batching": "padded"})

    count = count_operations(lambda: create(tmp_path / "counted"))
    for fatal in range(count):
        folder = tmp_path / "new"

        def create_and_exit(fatal: int = fatal, folder: Path = folder) -> None:
            with faulty_disk(fatal, exit_process):
                create(folder)

        assert run_in_child(create_and_exit) == 9
        assert not is_run(folder) or run_damage(folder) == []
        remove_leftovers_beside(folder)
        assert temporary_files(folder) == []
        shutil.rmtree(folder, ignore_errors=True)
    save_results("faults.exit-run", faults=count, intact=count)


def test_event_log_on_a_full_disk_is_an_error_once(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    event_log = EventLog(tmp_path / "metrics.jsonl")
    with pytest.raises(StorageError, match=r"metrics\.jsonl: cannot be written: No space left"):
        event_log.write(Event("note", 1, {"text": "x"}))
    event_log.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A mounted disk of 4 MB if mounting is allowed, else a plain folder."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    yield disk
    if mounted:
        subprocess.run(["umount", str(disk)], check=True)


def test_training_resumes_bit_identically_after_a_full_disk(
    small_disk: Path, tmp_path: Path
) -> None:
    """The disk becomes full after a random checkpoint, with a few kilobytes left."""
    config = tiny_config("training.evaluate_every=5")
    straight = tmp_path / "straight"
    train(config, straight)
    trials = count_trials(1, 25)
    for trial in range(trials):
        generator = random.Random(trial)
        step, free = generator.choice((3, 6, 9)), generator.choice((0, 4096, 8192, 16384))
        folder, filler = small_disk / "run", small_disk / "filler"
        with pytest.MonkeyPatch.context() as patch:

            def fill_disk(event: Event, step: int = step, free: int = free) -> None:
                if event.kind == "checkpoint" and event.step == step:
                    fill(small_disk, filler, free, patch)  # noqa: B023

            with pytest.raises(StorageError) as caught:
                train(config, folder, report=fill_disk)
        assert caught.value.exit_code == 74
        assert str(folder) in str(caught.value)
        assert re.search(r"No space left on device \([\d,]+ bytes free", str(caught.value))
        assert read_trainer_state(folder)["step"] == step
        filler.unlink(missing_ok=True)
        train(config, folder, resume=True)
        assert checkpoint_digests(folder) == checkpoint_digests(straight)
        assert temporary_files(folder) == []
        assert read_events(folder)[-1]["event"] == "end"
        shutil.rmtree(folder)
    kind = "mounted_disks" if small_disk.is_mount() else "simulated_disks"
    save_results("full-disk", **{kind: trials}, identical_results=trials)


def fill(disk: Path, filler: Path, free: int, patch: pytest.MonkeyPatch) -> None:
    """Fill a mounted disk up to this number of free bytes, or simulate it in a plain folder."""
    if not disk.is_mount():
        patch.setattr(Path, "mkdir", lambda *_, **__: os_error(errno.ENOSPC)())
        return
    with filler.open("wb", buffering=0) as file:
        with suppress(OSError):
            for _ in range(4096):
                file.write(b"x" * 4096)
        file.truncate(max(0, file.tell() - free))
