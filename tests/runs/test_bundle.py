"""Run folders: self-contained, movable, and loaded only if they are complete."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from seqloom.core.errors import NotFoundError, StorageError
from seqloom.core.storage import write_file, write_manifest
from seqloom.inference.run import load
from seqloom.runs.bundle import _load_bundle, load_bundle
from seqloom.runs.integrity import weights_store
from seqloom.runs.weights import read_tensors, write_tensors
from seqloom.training.event_log import Event
from seqloom.training.loop import train
from support.tiny_runs import EventCollector, tiny_config

PAIRS = "ab\tba\nabc\tcba\nab\tab\ncd\tdc\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle") / "run"
    train(tiny_config("training.steps=8", "training.evaluate_every=8"), folder)
    return folder


def test_error_if_the_folder_is_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="this run folder does not exist"):
        load(tmp_path / "nowhere")
    with pytest.raises(NotFoundError, match="is not a run folder"):
        load(tmp_path)


@pytest.mark.slow
def test_run_folder_works_after_it_was_moved_without_its_data(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "pairs.tsv").write_text(PAIRS * 10)
    data = [f"data.{split}={{kind='tsv', path='pairs.tsv'}}" for split in ("train", "dev", "test")]
    config = tiny_config(*data, f"data.folder={tmp_path / 'data'}", "training.steps=8")
    train(config, tmp_path / "run")
    before = load(tmp_path / "run").translate(["ab", "dcb"], beam=3)
    shutil.move(tmp_path / "run", tmp_path / "else" / "where")
    shutil.rmtree(tmp_path / "data")
    after = load(tmp_path / "else" / "where").translate(["ab", "dcb"], beam=3)
    for first, second in zip(before, after, strict=True):
        assert (first.text, first.score, first.pieces) == (second.text, second.score, second.pieces)


@pytest.mark.slow
def test_run_without_weights_is_an_error_that_explains_why(tmp_path: Path) -> None:
    def stop(event: Event) -> None:
        if event.kind == "checkpoint":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tiny_config(), tmp_path / "run", report=stop)
    with pytest.raises(NotFoundError, match="training has not reached its first evaluation"):
        load(tmp_path / "run")


@pytest.mark.slow
def test_weights_that_do_not_match_the_recipe_are_an_error(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    path = weights_store(copy).current()
    assert path is not None
    weights = read_tensors(path / "model.safetensors")
    first, second, *_ = sorted(weights)
    shape = tuple(weights[first].shape)
    del weights[second]
    write_tensors(
        path / "model.safetensors",
        {**weights, first: torch.zeros(99, *shape[1:]), "new": torch.zeros(1)},
    )
    (path / "manifest.json").unlink()
    write_manifest(path, step=8)
    with pytest.raises(StorageError) as caught:
        load(copy)
    assert f"  '{first}' is {(99, *shape[1:])}, expected {shape}" in str(caught.value)
    assert f"  '{second}' is missing" in str(caught.value)
    assert "  'new' is unexpected" in str(caught.value)
    assert "Copy the whole run again" in str(caught.value)


@pytest.mark.slow
def test_run_can_be_loaded_during_training(tmp_path: Path) -> None:
    collector = EventCollector()

    def load_run(event: Event) -> None:
        collector(event)
        if event.kind in ("checkpoint", "evaluate") and event.step >= 4:
            assert load(tmp_path / "run").translate(["ab"])

    train(tiny_config(), tmp_path / "run", report=load_run)
    assert collector.kinds().count("evaluate") == 3


@pytest.mark.slow
def test_loading_is_repeated_if_training_replaces_the_weights_meanwhile(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    store, attempts = weights_store(copy), []

    def load_during_training(folder: Path, device: torch.device, settings: Sequence[str]) -> object:
        attempts.append(folder)
        if len(attempts) < 3:
            path = store.current()
            assert path is not None
            data = (path / "model.safetensors").read_bytes()
            step = 8 + len(attempts)
            store.add(step, lambda new: write_file(new / "model.safetensors", data), 1)
            raise StorageError("the current folder was removed")
        return _load_bundle(folder, device, settings)

    monkeypatch.setattr("seqloom.runs.bundle._load_bundle", load_during_training)
    load_bundle(copy, torch.device("cpu"))
    assert len(attempts) == 3
