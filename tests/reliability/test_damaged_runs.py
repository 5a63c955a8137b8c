"""Damage to any file of a run is detected before the run is used. Training resumes if it can."""

import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from seqloom.core.errors import StorageError
from seqloom.core.storage import find_damage, write_manifest
from seqloom.inference.run import load
from seqloom.runs.archive import pack_run, unpack_run
from seqloom.runs.checkpoint_store import CheckpointStore
from seqloom.runs.integrity import weights_store
from seqloom.training.loop import train
from support.tiny_runs import (
    EventCollector,
    checkpoint_digests,
    latest_checkpoint,
    read_events,
    read_trainer_state,
    tiny_config,
)
from support.trials import count_trials, save_results

pytestmark = pytest.mark.slow

FLIPS = count_trials(6, 800)
"""Number of random bits flipped in each file, besides its first and last bit."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run: weights, two checkpoints, an event log and an evaluation."""
    folder = tmp_path_factory.mktemp("damaged") / "run"
    train(tiny_config(), folder)
    load(folder).evaluate("test", beam=1).save(folder)
    return folder


def flip_bit(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def damaged_versions(data: bytes, generator: random.Random) -> Iterator[bytes]:
    """The content of a file after various kinds of damage."""
    bits = 8 * len(data)
    for bit in (0, bits - 1, *(generator.randrange(bits) for _ in range(FLIPS))):
        yield flip_bit(data, bit)
    yield b""
    yield data[:-1]
    yield data[: generator.randrange(len(data))]
    yield data + b"\n"
    block = generator.randrange(len(data))
    yield data[:block] + bytes(len(data[block : block + 512])) + data[block + 512 :]


@contextmanager
def replaced(contents: Mapping[Path, bytes | None]) -> Iterator[None]:
    """Inside the context, files have other contents; None removes them."""
    before = {path: path.read_bytes() for path in contents}
    for path, data in contents.items():
        if data is None:
            path.unlink()
        else:
            path.write_bytes(data)
    yield
    for path, data in before.items():
        path.write_bytes(data)


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_changed_files_are_detected(run: Path) -> None:
    load(run)
    cases = 0
    for path in files_of(run):
        data = path.read_bytes()
        for damaged in damaged_versions(data, random.Random(path.name)):
            if damaged == data or (path.name == "metrics.jsonl" and damaged.startswith(data)):
                continue  # the event log may grow
            with replaced({path: damaged}), pytest.raises(StorageError, match=path.name):
                load(run)
            cases += 1
    assert cases > 250
    load(run)
    save_results("damage.changed", cases=cases, detected=cases)


@pytest.mark.parametrize("name", ["best", "latest"])
def test_changed_bits_of_a_pointer_are_detected(run: Path, name: str) -> None:
    """Even if the pointer then names another existing folder."""
    data = (run / name).read_bytes()
    for bit in range(8 * len(data)):
        with replaced({run / name: flip_bit(data, bit)}), pytest.raises(StorageError, match=name):
            load(run)
    save_results(f"damage.{name}", cases=8 * len(data), detected=8 * len(data))


def test_missing_files_are_detected(run: Path) -> None:
    paths = files_of(run)
    for path in paths:
        with replaced({path: None}), pytest.raises(StorageError, match=path.name):
            load(run)
    load(run)
    save_results("damage.missing", cases=len(paths), detected=len(paths))


def test_swapped_files_are_detected(run: Path) -> None:
    cases = 0
    for first, second in combinations(files_of(run), 2):
        first_data, second_data = first.read_bytes(), second.read_bytes()
        if first_data == second_data:
            continue
        # After a swap of two manifests, the files that they list appear damaged.
        names = f"{first.name}|{second.name}|safetensors|report.json"
        swapped = {first: second_data, second: first_data}
        with replaced(swapped), pytest.raises(StorageError, match=names):
            load(run)
        cases += 1
    load(run)
    save_results("damage.swapped", cases=cases, detected=cases)


def test_swapped_checkpoints_are_detected(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    older, newer = sorted((copy / "checkpoints").iterdir())
    aside = tmp_path / "aside"
    for source, target in ((older, aside), (newer, older), (aside, newer)):
        source.rename(target)
    with pytest.raises(StorageError, match="contains the files of another step"):
        load(copy)


def test_checkpoints_may_be_removed_only_completely(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    remedy = "you can instead remove checkpoints/ and latest, which only --resume needs"
    for path in (
        latest_checkpoint(copy) / "optimizer.safetensors",
        latest_checkpoint(copy),
        copy / "checkpoints",
    ):
        (shutil.rmtree if path.is_dir() else Path.unlink)(path)
        with pytest.raises(StorageError, match=remedy):
            load(copy)
    remedy = "Restore it from a backup, or train again"
    with replaced({copy / "text/source.json": None}), pytest.raises(StorageError, match=remedy):
        load(copy)
    (copy / "latest").unlink()
    assert load(copy).translate(["ab"])[0].text == load(run).translate(["ab"])[0].text


def test_error_lists_all_damage(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "best").unlink()
    (copy / "text" / "source.json").write_bytes(b"{}")
    (latest_checkpoint(copy) / "optimizer.safetensors").unlink()
    with pytest.raises(StorageError) as caught:
        load(copy)
    for name in ("best", "source.json", "optimizer.safetensors", "Restore it from a backup"):
        assert name in str(caught.value)


def test_links_out_of_the_folder_are_damage(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    write_manifest(folder)
    assert find_damage(folder) == [
        f"{folder / 'link'}: is a symbolic link, or lies outside the folder"
    ]


@pytest.mark.parametrize("name", ["model.safetensors", "trainer.json", "manifest.json"])
def test_training_resumes_from_the_checkpoint_before_a_damaged_one(
    run: Path, tmp_path: Path, name: str
) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    expected, step = checkpoint_digests(copy), read_trainer_state(copy)["step"]
    path = latest_checkpoint(copy) / name
    path.write_bytes(flip_bit(path.read_bytes(), 99))
    collector = EventCollector()
    train(tiny_config(), copy, resume=True, report=collector)
    notes = [event for event in collector.events if event.kind == "note"]
    assert name in notes[0].data["text"]
    assert (
        f"training resumes from the intact checkpoint of step {step - 3}" in notes[0].data["text"]
    )
    assert next(event for event in collector.events if event.kind == "start").step == step - 3
    assert checkpoint_digests(copy) == expected
    assert [event["text"] for event in read_events(copy) if event["event"] == "note"]
    load(copy)


@pytest.mark.parametrize("name", ["latest", "metrics.jsonl"])
def test_training_resumes_despite_a_damaged_pointer_or_event_log(
    run: Path, tmp_path: Path, name: str
) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    expected = checkpoint_digests(copy)
    for damaged in (flip_bit((copy / name).read_bytes(), 99), (copy / name).read_bytes()[:-3]):
        (copy / name).write_bytes(damaged)
        collector = EventCollector()
        train(tiny_config(), copy, resume=True, report=collector)
        assert name in next(e for e in collector.events if e.kind == "note").data["text"]
        assert checkpoint_digests(copy) == expected
        load(copy)
    events = read_events(copy)  # every line must be JSON
    assert events[-1]["event"] == "end"


def test_training_does_not_resume_without_an_intact_checkpoint(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    for path in (copy / "checkpoints").iterdir():
        (path / "trainer.json").unlink()
    with pytest.raises(
        StorageError, match="every checkpoint is damaged, so training cannot resume"
    ):
        train(tiny_config(), copy, resume=True)


def without_checkpoints(run: Path, folder: Path) -> None:
    """Copy a run, as users may: without what only --resume needs."""
    shutil.copytree(run, folder, ignore=shutil.ignore_patterns("checkpoints", "latest"))


def unpacked(run: Path, folder: Path) -> None:
    pack_run(run, folder.parent / "packed.seqloom")
    unpack_run(folder.parent / "packed.seqloom", folder)


def without_checkpoint_folders(run: Path, folder: Path) -> None:
    shutil.copytree(run, folder, ignore=shutil.ignore_patterns("checkpoints"))


def with_a_damaged_pointer_only(run: Path, folder: Path) -> None:
    without_checkpoint_folders(run, folder)
    (folder / "latest").write_bytes(flip_bit((folder / "latest").read_bytes(), 99))


@pytest.mark.parametrize(
    "copy_run",
    [without_checkpoints, unpacked, without_checkpoint_folders, with_a_damaged_pointer_only],
)
def test_training_never_replaces_the_weights_of_a_run_without_checkpoints(
    copy_run: Callable[[Path, Path], None], run: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    copy_run(run, copy)
    before = {path: path.read_bytes() for path in files_of(copy)}
    with pytest.raises(StorageError, match=r"the checkpoints are missing.*--from"):
        train(tiny_config(), copy, resume=True)
    after = {path: path.read_bytes() for path in files_of(copy) if ".lock" not in path.name}
    assert after == {path: data for path, data in before.items() if ".lock" not in path.name}


def test_training_that_was_killed_before_its_first_checkpoint_starts_again(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "add", raise_interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(tiny_config(), tmp_path / "run")
    assert not list((tmp_path / "run").glob("checkpoints/*"))
    train(tiny_config(), tmp_path / "run", resume=True)
    assert checkpoint_digests(tmp_path / "run") == checkpoint_digests(run)


def test_training_starts_again_however_early_it_was_killed(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before it created the store of the checkpoints, then after it has stored weights."""
    add = CheckpointStore.add

    def add_weights_only(self: CheckpointStore, *args: Any, **options: Any) -> Path:
        if self.folder.name == "checkpoints":
            raise KeyboardInterrupt
        return add(self, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "create", raise_interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(tiny_config(), tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "add", add_weights_only)
        with pytest.raises(KeyboardInterrupt):
            train(tiny_config("training.checkpoint_every=8"), tmp_path / "run", resume=True)
    assert weights_store(tmp_path / "run").paths()
    train(tiny_config(), tmp_path / "run", resume=True)
    assert checkpoint_digests(tmp_path / "run") == checkpoint_digests(run)


def raise_interrupt(*args: object, **options: object) -> None:
    raise KeyboardInterrupt
