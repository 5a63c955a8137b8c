"""Damage to any file of a run is seen before the run is used, and survived where it can be."""

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path

import pytest

from forking import CAMPAIGN
from seqloom.core.errors import StorageError
from seqloom.core.storage import find_damage, write_manifest
from seqloom.runs.run import load
from seqloom.training.loop import train
from tiny_runs import Watcher, journal, latest, outcome, recipe, saved_record

FLIPS = 6 * CAMPAIGN
"""Bits that are flipped in each file, besides its first and last."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run: weights, two checkpoints, a journal and an evaluation."""
    folder = tmp_path_factory.mktemp("damaged") / "run"
    train(recipe(), folder)
    load(folder).evaluate("test", beam=1).save(folder)
    return folder


def _flip(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def _harms(data: bytes, chance: random.Random) -> Iterator[bytes]:
    """The file after some accident."""
    bits = 8 * len(data)
    for bit in (0, bits - 1, *(chance.randrange(bits) for _ in range(FLIPS))):
        yield _flip(data, bit)
    yield b""
    yield data[:-1]
    yield data[: chance.randrange(len(data))]
    yield data + b"\n"
    block = chance.randrange(len(data))
    yield data[:block] + bytes(len(data[block : block + 512])) + data[block + 512 :]


@contextmanager
def _changed(contents: dict[Path, bytes | None]) -> Iterator[None]:
    """Inside, files have other contents; None: they are gone."""
    before = {path: path.read_bytes() for path in contents}
    for path, data in contents.items():
        if data is None:
            path.unlink()
        else:
            path.write_bytes(data)
    yield
    for path, data in before.items():
        path.write_bytes(data)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_no_file_of_a_run_can_be_changed_unseen(run: Path) -> None:
    load(run)
    cases = 0
    for path in _files(run):
        data = path.read_bytes()
        for harmed in _harms(data, random.Random(path.name)):
            if harmed == data or (path.name == "metrics.jsonl" and harmed.startswith(data)):
                continue  # what only grows may grow
            with _changed({path: harmed}), pytest.raises(StorageError, match=path.name):
                load(run)
            cases += 1
    assert cases > 250
    load(run)


@pytest.mark.parametrize("name", ["best", "latest"])
def test_no_bit_of_a_pointer_can_change_unseen(run: Path, name: str) -> None:
    """Not even into the name of another folder that is there."""
    data = (run / name).read_bytes()
    for bit in range(8 * len(data)):
        with _changed({run / name: _flip(data, bit)}), pytest.raises(StorageError, match=name):
            load(run)


def test_no_file_of_a_run_can_be_taken_away_unseen(run: Path) -> None:
    for path in _files(run):
        with _changed({path: None}), pytest.raises(StorageError, match=path.name):
            load(run)
    load(run)


def test_no_two_files_of_a_run_can_change_places_unseen(run: Path) -> None:
    for one, other in combinations(_files(run), 2):
        first, second = one.read_bytes(), other.read_bytes()
        if first == second:
            continue
        # Two manifests that change places accuse the files that they list.
        blamed = f"{one.name}|{other.name}|safetensors|report.json"
        with _changed({one: second, other: first}), pytest.raises(StorageError, match=blamed):
            load(run)
    load(run)


def test_no_two_checkpoints_can_change_places_unseen(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    older, newer = sorted((copy / "checkpoints").iterdir())
    for one, other in ((older, tmp_path / "aside"), (newer, older), (tmp_path / "aside", newer)):
        one.rename(other)
    with pytest.raises(StorageError, match="holds what belongs to another step"):
        load(copy)


def test_what_only_resuming_needs_may_go_and_if_half_of_it_is_gone_that_is_told(
    run: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    way = "if training is over, remove checkpoints/ and latest, which only --resume needs"
    for path in (latest(copy) / "optimizer.safetensors", latest(copy), copy / "checkpoints"):
        (shutil.rmtree if path.is_dir() else Path.unlink)(path)
        with pytest.raises(StorageError, match=way):
            load(copy)
    again = "Restore it from a copy, or train again"
    with _changed({copy / "text/source.json": None}), pytest.raises(StorageError, match=again):
        load(copy)
    (copy / "latest").unlink()
    assert load(copy).translate(["ab"])[0].text == load(run).translate(["ab"])[0].text


def test_all_damage_is_told_at_once(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "best").unlink()
    (copy / "text" / "source.json").write_bytes(b"{}")
    (latest(copy) / "optimizer.safetensors").unlink()
    with pytest.raises(StorageError) as caught:
        load(copy)
    for name in ("best", "source.json", "optimizer.safetensors", "Restore it from a copy"):
        assert name in str(caught.value)


def test_a_manifest_cannot_lead_out_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    write_manifest(folder)
    assert find_damage(folder) == [f"{folder / 'link'}: leads out of the folder"]


@pytest.mark.parametrize("name", ["model.safetensors", "trainer.json", "manifest.json"])
def test_a_damaged_checkpoint_is_told_and_the_one_before_it_serves(
    run: Path, tmp_path: Path, name: str
) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    expected, step = outcome(copy), saved_record(copy)["step"]
    path = latest(copy) / name
    path.write_bytes(_flip(path.read_bytes(), 99))
    watcher = Watcher()
    train(recipe(), copy, resume=True, report=watcher)
    notes = [event for event in watcher.events if event.kind == "note"]
    assert name in notes[0].data["text"]
    assert f"training goes on from step {step - 3}, which is whole" in notes[0].data["text"]
    assert next(event for event in watcher.events if event.kind == "start").step == step - 3
    assert outcome(copy) == expected
    assert [line["text"] for line in journal(copy) if line["event"] == "note"]
    load(copy)


@pytest.mark.parametrize("name", ["latest", "metrics.jsonl"])
def test_training_goes_on_from_a_whole_checkpoint_whatever_lies_around_it(
    run: Path, tmp_path: Path, name: str
) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    expected = outcome(copy)
    for harmed in (_flip((copy / name).read_bytes(), 99), (copy / name).read_bytes()[:-3]):
        (copy / name).write_bytes(harmed)
        watcher = Watcher()
        train(recipe(), copy, resume=True, report=watcher)
        assert name in next(e for e in watcher.events if e.kind == "note").data["text"]
        assert outcome(copy) == expected
        load(copy)
    assert journal(copy)[-1]["event"] == "end"  # and every line before it is JSON


def test_without_a_whole_checkpoint_nothing_is_made_up(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    for place in (copy / "checkpoints").iterdir():
        (place / "trainer.json").unlink()
    with pytest.raises(StorageError, match="no checkpoint is whole, so training cannot go on"):
        train(recipe(), copy, resume=True)
