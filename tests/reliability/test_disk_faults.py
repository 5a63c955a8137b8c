"""Whatever the disk does, and whenever the process dies, what was saved before is there."""

import errno
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from faults import FAULTS, die, failing, operations_in, refuse

from forking import in_child
from seqloom.config.loading.toml import format_recipe
from seqloom.core.errors import StorageError
from seqloom.core.storage import (
    atomic_folder,
    remove_leftovers,
    remove_leftovers_beside,
    replace_listed_file,
)
from seqloom.runs.folder.bundle import create_run
from seqloom.runs.folder.integrity import (
    CONFIG,
    EVENT_LOG,
    WEIGHTS,
    is_run,
    run_damage,
    weights_store,
)
from seqloom.runs.folder.weights import weights_of, write_tensors
from seqloom.runs.run import load
from seqloom.tasks.build import load_task
from seqloom.training.checkpoint import save_checkpoint
from seqloom.training.distributed import World
from seqloom.training.event_log import Event, EventLog
from seqloom.training.loop import train
from seqloom.training.session import Session
from seqloom.training.setup import open_session
from tiny_runs import journal, outcome, recipe, saved_record, stray

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two checkpoints, best weights and an evaluation."""
    folder = tmp_path_factory.mktemp("faults") / "run"
    train(recipe("training.steps=6", "training.evaluate_every=3"), folder)
    load(folder).evaluate("test", beam=1).save(folder)
    return folder


@pytest.fixture(scope="module")
def session(run: Path) -> Iterator[Session]:
    """The run, opened again, one step on."""
    config = recipe("training.steps=6", "training.evaluate_every=3")
    session = open_session(config, run, True, World(0, 1, CPU), lambda event: None)
    session.step += 1
    yield session
    session.event_log.close()


@dataclass(frozen=True)
class Saving:
    """Something that is written into a copy of the run."""

    session: Session
    copy: Path

    def work(self, name: str) -> Callable[[], None]:
        works: dict[str, Callable[[], None]] = {
            "checkpoint": lambda: save_checkpoint(self.session),
            "weights": self.weights,
            "recipe": lambda: replace_listed_file(self.copy, CONFIG, self.changed()),
            "report": self.report,
        }
        return works[name]

    def changed(self) -> bytes:
        return format_recipe(recipe("training.steps=99", "training.evaluate_every=3")).encode()

    def weights(self) -> None:
        weights_store(self.copy).add(
            7, lambda folder: write_tensors(folder / WEIGHTS, weights_of(self.session.model)), 1
        )

    def report(self) -> None:
        with atomic_folder(self.copy / "evaluation" / "test") as folder:
            (folder / "report.json").write_text("{}")


@pytest.fixture
def saving(run: Path, session: Session, tmp_path: Path) -> Iterator[Callable[[], Saving]]:
    """Makes fresh copies of the run to write into."""
    journals: list[EventLog] = []

    def fresh() -> Saving:
        copy = tmp_path / "runs" / "run"
        shutil.rmtree(copy.parent, ignore_errors=True)
        shutil.copytree(run, copy)
        session.folder = copy
        session.event_log = EventLog(copy / EVENT_LOG)
        journals.append(session.event_log)
        return Saving(session, copy)

    kept = session.event_log
    yield fresh
    session.event_log = kept
    for journal_ in journals:
        journal_.close()


WORKS = ("checkpoint", "weights", "recipe", "report")


@pytest.mark.parametrize("name", WORKS)
def test_dying_at_any_moment_of_a_save_leaves_what_was_there_or_what_should_be(
    saving: Callable[[], Saving], name: str
) -> None:
    count = operations_in(saving().work(name))
    assert count > 10
    steps = set()
    for fatal in range(count):
        trial = saving()
        work = trial.work(name)

        def dying(fatal: int = fatal, work: Callable[[], None] = work) -> None:
            with failing(fatal, die):
                work()

        assert in_child(dying) == 9
        assert run_damage(trial.copy) == []
        steps.add(saved_record(trial.copy)["step"])
        remove_leftovers_beside(trial.copy)
        remove_leftovers(trial.copy)
        assert stray(trial.copy) == []
        assert run_damage(trial.copy) == []
        assert (trial.copy / "evaluation" / "test" / "report.json").is_file()
    assert steps == ({6, 7} if name == "checkpoint" else {6})


@pytest.mark.parametrize(
    ("name", "fault"), [*((name, "ENOSPC") for name in WORKS), ("checkpoint", "EIO")]
)
def test_a_failing_disk_is_told_and_nothing_that_was_saved_is_lost(
    saving: Callable[[], Saving], name: str, fault: str
) -> None:
    count = operations_in(saving().work(name))
    told = 0
    for fatal in range(count):
        trial = saving()
        work = trial.work(name)
        error = _error_of(work, fatal, fault)
        if error is not None:
            told += 1
            assert str(trial.copy) in str(error)
            assert "what was saved before is untouched" in str(error)
            assert error.exit_code == 74
        assert run_damage(trial.copy) == []
        work()  # and once the disk is well again, so is everything else
        remove_leftovers(trial.copy)
        assert stray(trial.copy) == []
        assert run_damage(trial.copy) == []
    # Only what clears away may fail in silence: it is done again at the next start.
    assert told >= count // 2


def _error_of(work: Callable[[], None], fatal: int, fault: str) -> StorageError | None:
    with failing(fatal, FAULTS[fault]):
        try:
            work()
        except StorageError as error:
            return error
    return None


def test_a_run_folder_is_made_whole_or_not_at_all(run: Path, tmp_path: Path) -> None:
    config = recipe()
    task = load_task(config.task, run / "text")

    def make(folder: Path) -> None:
        create_run(folder, config, task, {"corpus": "", "batching": "padded"})

    for fatal in range(operations_in(lambda: make(tmp_path / "counted"))):
        folder = tmp_path / "new"

        def dying(fatal: int = fatal, folder: Path = folder) -> None:
            with failing(fatal, die):
                make(folder)

        assert in_child(dying) == 9
        assert not is_run(folder) or run_damage(folder) == []
        remove_leftovers_beside(folder)
        assert stray(folder) == []
        shutil.rmtree(folder, ignore_errors=True)


def test_a_failing_journal_is_told_and_does_not_fail_again_when_closed(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    book = EventLog(tmp_path / "metrics.jsonl")
    with pytest.raises(StorageError, match=r"metrics\.jsonl: cannot be written: No space left"):
        book.write(Event("note", 1, {"text": "x"}))
    book.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MB of its own where that is allowed, else a plain folder."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    yield place
    if mounted:
        subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_stops_training_and_room_lets_it_go_on_bit_by_bit(
    small_disk: Path, tmp_path: Path
) -> None:
    config = recipe("training.evaluate_every=5")
    straight = tmp_path / "straight"
    train(config, straight)
    folder, filler = small_disk / "run", small_disk / "filler"
    with pytest.MonkeyPatch.context() as patch:

        def fill(event: Event) -> None:
            if event.kind != "checkpoint" or event.step != 6:
                return
            if not small_disk.is_mount():
                patch.setattr(Path, "mkdir", lambda *_, **__: refuse(errno.ENOSPC)())
                return
            with filler.open("wb", buffering=0) as file, suppress(OSError):
                for _ in range(4096):
                    file.write(b"x" * 4096)

        with pytest.raises(StorageError, match=r"No space left on device \([\d,]+ bytes free"):
            train(config, folder, report=fill)
    assert saved_record(folder)["step"] == 6
    filler.unlink(missing_ok=True)
    train(config, folder, resume=True)
    assert outcome(folder) == outcome(straight)
    assert stray(folder) == []
    assert [line["event"] for line in journal(folder)][-1] == "end"
