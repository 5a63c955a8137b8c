"""A power failure loses nothing that a command has reported as written.

Every file is synced before the rename that makes it visible, and its folder after the rename.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from seqloom.core.storage import (
    MANIFEST,
    atomic_folder,
    read_manifest,
    replace_listed_file,
    write_file,
)
from seqloom.data.corpus.disk_cache import cached_folder
from seqloom.inference.run import load
from seqloom.jobs.batch_translation.output_file import OutputFile, open_output_file
from seqloom.runs.archive import pack_run, unpack_run
from seqloom.runs.checkpoint_store import CheckpointStore
from seqloom.runs.integrity import CONFIG, EVENT_LOG, checkpoint_store, weights_store
from seqloom.training.event_log import Event, EventLog
from seqloom.training.loop import train
from support.cli_runner import run_cli
from support.disk_recorder import DiskRecorder, recorded_disk
from support.tiny_runs import TRANSFORMER, tiny_config


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, DiskRecorder]:
    """A run with two checkpoints in a new folder, and the record of its training."""
    root = tmp_path_factory.mktemp("durability")
    config = tiny_config(*TRANSFORMER, "training.steps=2", "training.checkpoint_every=1")
    with recorded_disk(root) as disk:
        train(config, root / "runs" / "run")
    return root / "runs" / "run", disk


@pytest.fixture
def run(training: tuple[Path, DiskRecorder]) -> Path:
    return training[0]


def test_training_syncs_every_file_before_its_rename(training: tuple[Path, DiskRecorder]) -> None:
    assert training[1].violations == []


def test_a_power_failure_after_training_loses_no_file(training: tuple[Path, DiskRecorder]) -> None:
    run, disk = training
    checkpoint, weights = checkpoint_store(run).current(), weights_store(run).current()
    assert checkpoint is not None
    assert weights is not None
    pointers = [checkpoint_store(run).pointer, weights_store(run).pointer]
    root = run.parent.parent
    for path in (checkpoint, weights, *pointers, run / CONFIG, run / MANIFEST, run / "text"):
        assert disk.lost(path, root) == []


def test_a_checkpoint_is_on_the_disk_before_the_pointer_names_it(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path / "checkpoints", tmp_path / "latest")
    store.add(1, lambda folder: write_text(folder / "weights", "1"), keep=1)
    with recorded_disk(tmp_path) as disk:
        store.add(2, lambda folder: write_text(folder / "weights", "2"), keep=1)
    assert disk.violations == []
    visible = [call for call in disk.calls if not call.startswith("fsync .tmp-")]
    assert visible == [
        "fsync weights",
        "rename manifest.json",
        "rename step-00000002",
        "fsync checkpoints",
        "rename latest",
        f"fsync {tmp_path.name}",
        next(call for call in visible if call.startswith("rename .tmp-gone-step-00000001")),
    ]


def write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def fill(folder: Path) -> None:
    write_text(folder / "a", "text")
    (folder / "deep" / "deeper").mkdir(parents=True)
    write_text(folder / "deep" / "deeper" / "b", "text")


@pytest.mark.parametrize("exists", [False, True])
def test_an_atomic_folder_is_on_the_disk_with_its_manifest(tmp_path: Path, exists: bool) -> None:
    path = tmp_path / "new" / "parents" / "folder"
    if exists:
        with atomic_folder(path) as folder:
            write_text(folder / "old", "text")
    with recorded_disk(tmp_path) as disk:
        with atomic_folder(path) as folder:
            fill(folder)
        assert disk.lost(path, tmp_path) == []
    assert disk.violations == []
    assert set(read_manifest(path)["files"]) == {"a", "deep/deeper/b"}


@pytest.mark.parametrize("exists", [False, True])
def test_a_file_is_synced_renamed_and_its_folder_synced(tmp_path: Path, exists: bool) -> None:
    path = tmp_path / "file"
    if exists:
        path.write_bytes(b"old")
    with recorded_disk(tmp_path) as disk:
        write_file(path, b"new")
        assert disk.lost(path, tmp_path) == []
    assert disk.violations == []
    assert disk.calls == ["fsync .tmp-file", "rename file", f"fsync {tmp_path.name}"]


def test_a_listed_file_is_replaced_between_two_synced_manifests(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "run") as folder:
        fill(folder)
    with recorded_disk(tmp_path) as disk:
        replace_listed_file(tmp_path / "run", "a", b"new")
        assert disk.lost(tmp_path / "run", tmp_path) == []
    assert disk.violations == []
    renames = [call for call in disk.calls if call.startswith("rename")]
    assert renames == ["rename manifest.json", "rename a"] * 2


def test_the_event_log_is_synced_when_a_checkpoint_stores_its_position(tmp_path: Path) -> None:
    log = EventLog(tmp_path / EVENT_LOG)
    with recorded_disk(tmp_path) as disk:
        log.write(Event("note", 1, {"text": "x"}))
        assert disk.unsynced(log.path) == [log.path]
        log.position()
        assert disk.unsynced(log.path) == []
    log.close()


def test_training_syncs_the_event_log_before_each_checkpoint(
    training: tuple[Path, DiskRecorder],
) -> None:
    log, optimizer, pointer = f"fsync {EVENT_LOG}", "fsync optimizer.safetensors", "rename latest"
    order = [call for call in training[1].calls if call in (log, optimizer, pointer)]
    assert order == [pointer, *([log, optimizer, pointer] * 2)]  # the first pointer names no folder


def test_every_portion_of_an_output_is_synced_before_the_record_counts_it(tmp_path: Path) -> None:
    files = OutputFile(tmp_path / "out")
    with recorded_disk(tmp_path) as disk:
        with open_output_file(files, {"options": {}}, overwrite=False) as lines:
            for number in range(1, 3):
                lines.write(f"line {number}")
                lines.end_portion(number)
                assert disk.lost(files.partial, tmp_path) == []
                assert disk.lost(files.record, tmp_path) == []
                portion = disk.calls[-4:]
                assert portion[0] == "fsync out.partial"
                assert portion[2:] == ["rename out.progress.json", f"fsync {tmp_path.name}"]
        assert disk.lost(files.path, tmp_path) == []
    assert disk.violations == []
    assert disk.calls[-3:] == ["rename out", f"fsync {tmp_path.name}", "remove out.progress.json"]


def test_an_output_is_synced_even_if_its_last_portion_was_not_ended(tmp_path: Path) -> None:
    with recorded_disk(tmp_path) as disk:
        with open_output_file(OutputFile(tmp_path / "out"), None, overwrite=False) as lines:
            lines.write("line")
        assert disk.lost(tmp_path / "out", tmp_path) == []
    assert disk.violations == []
    assert (tmp_path / "out").read_bytes() == b"line\n"


def pack_and_unpack(run: Path, root: Path) -> Path:
    pack_run(run, root / "new" / "packed.zip")
    unpack_run(root / "new" / "packed.zip", root / "unpacked" / "run")
    return root


def cache_folder(run: Path, root: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(root / "cache"))
        return cached_folder("corpus", "0123", fill)


def save_report(run: Path, root: Path) -> Path:
    load(run, engine="torch").evaluate("test", beam=1).save(root / "run")
    return root / "run" / "evaluation"


def translated_files(run: Path, root: Path) -> Path:
    (root / "in.txt").write_text("ab\ncd\n", encoding="utf-8")
    result = run_cli("translate-files", run, root / "in.txt", "--output", root / "out")
    assert result.exit_code == 0, result.stderr
    return root / "out" / "in.txt"


WRITERS: dict[str, Callable[[Path, Path], Path]] = {
    "packed run": pack_and_unpack,
    "cached folder": cache_folder,
    "evaluation": save_report,
    "translated files": translated_files,
}
"""Functions that write files below a folder, and return what must be on the disk then."""


@pytest.mark.parametrize("name", WRITERS)
def test_a_power_failure_after_writing_loses_nothing(name: str, run: Path, tmp_path: Path) -> None:
    with recorded_disk(tmp_path) as disk:
        written = WRITERS[name](run, tmp_path)
        assert written.is_file() or any(path.is_file() for path in written.rglob("*"))
        assert disk.lost(written, tmp_path) == []
    assert disk.violations == []
