"""A run folder works alone, wherever it is, or says what is wrong with it."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import DataError, NotFoundError, StorageError
from seqloom.core.storage import (
    atomic_folder,
    find_damage,
    remove_folder,
    write_file,
    write_manifest,
)
from seqloom.runs.evaluation.report import EvaluationReport, compare_reports
from seqloom.runs.folder.bundle import _load_bundle, load_bundle
from seqloom.runs.folder.checkpoint_store import CheckpointStore
from seqloom.runs.folder.integrity import weights_store
from seqloom.runs.folder.weights import read_tensors, write_tensors
from seqloom.runs.run import load
from seqloom.training.event_log import Event
from seqloom.training.loop import train
from tiny_runs import Watcher, recipe

PAIRS = "ab\tba\nabc\tcba\nab\tab\ncd\tdc\n"


def tsv_recipe(folder: Path, *changes: str) -> RunConfig:
    (folder / "pairs.tsv").write_text(PAIRS * 10)
    (folder / "test.tsv").write_text(PAIRS)
    files = {"train": "pairs", "dev": "test", "test": "test"}
    data = [f"data.{split}={{kind='tsv', path='{name}.tsv'}}" for split, name in files.items()]
    return recipe(*data, f"data.folder={folder}", "training.steps=8", *changes)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("folders")
    train(tsv_recipe(folder), folder / "run")
    return folder / "run"


def test_a_run_works_alone_wherever_it_is_moved(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    train(tsv_recipe(tmp_path / "data"), tmp_path / "run")
    before = load(tmp_path / "run").translate(["ab", "dcb"], beam=3)
    shutil.move(tmp_path / "run", tmp_path / "else" / "where")
    shutil.rmtree(tmp_path / "data")
    after = load(tmp_path / "else" / "where").translate(["ab", "dcb"], beam=3)
    for one, other in zip(before, after, strict=True):
        assert (one.text, one.score, one.pieces) == (other.text, other.score, other.pieces)


def test_what_is_no_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no such run folder"):
        load(tmp_path / "nowhere")
    with pytest.raises(NotFoundError, match="is not a run folder"):
        load(tmp_path)


def test_a_run_without_weights_says_why(tmp_path: Path) -> None:
    def stop(event: Event) -> None:
        if event.kind == "checkpoint":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(recipe(), tmp_path / "run", report=stop)
    with pytest.raises(NotFoundError, match="training has not reached its first evaluation"):
        load(tmp_path / "run")


def test_weights_that_do_not_fit_the_recipe_are_told(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    place = weights_store(copy).current()
    assert place is not None
    weights = read_tensors(place / "model.safetensors")
    first, second, *_ = sorted(weights)
    shape = tuple(weights[first].shape)
    del weights[second]
    write_tensors(
        place / "model.safetensors",
        {**weights, first: torch.zeros(99, *shape[1:]), "new": torch.zeros(1)},
    )
    (place / "manifest.json").unlink()
    write_manifest(place, step=8)
    with pytest.raises(StorageError) as caught:
        load(copy)
    assert f"  '{first}' is {(99, *shape[1:])}, expected {shape}" in str(caught.value)
    assert f"  has no '{second}'" in str(caught.value)
    assert "  has 'new' too much" in str(caught.value)


def test_what_is_no_tensor_file_is_told(tmp_path: Path) -> None:
    for data in (b"", b"x" * 100):
        (tmp_path / "x.safetensors").write_bytes(data)
        with pytest.raises(StorageError, match="cannot be read as tensors"):
            read_tensors(tmp_path / "x.safetensors")


def test_a_run_can_be_loaded_while_it_is_trained(tmp_path: Path) -> None:
    watcher = Watcher()

    def look(event: Event) -> None:
        watcher(event)
        if event.kind in ("checkpoint", "evaluate") and event.step >= 4:
            assert load(tmp_path / "run").translate(["ab"])

    train(recipe(), tmp_path / "run", report=look)
    assert watcher.kinds().count("evaluate") == 3


def test_a_run_that_moves_on_while_it_is_loaded_is_looked_at_again(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    weights, looks = weights_store(copy), []

    def moving(folder: Path, device: torch.device, settings: Sequence[str]) -> object:
        looks.append(folder)
        if len(looks) < 3:  # the trainer puts newer weights there in the middle of a look
            place = weights.current()
            assert place is not None
            data = (place / "model.safetensors").read_bytes()
            step = 8 + len(looks)
            weights.add(step, lambda new: write_file(new / "model.safetensors", data), 1)
            raise StorageError("what was pointed to is gone")
        return _load_bundle(folder, device, settings)

    monkeypatch.setattr("seqloom.runs.folder.bundle._load_bundle", moving)
    load_bundle(copy, torch.device("cpu"))
    assert len(looks) == 3


def shelf_with(folder: Path, *steps: int, keep: int = 2) -> CheckpointStore:
    shelf = CheckpointStore(folder / "shelf", folder / "pointer")
    for step in steps:
        shelf.add(step, lambda place: write_file(place / "x", b"x"), keep)
    return shelf


def names(shelf: CheckpointStore) -> list[str]:
    return [place.name for place in shelf.paths()]


def test_a_shelf_keeps_the_newest_and_points_to_the_last(tmp_path: Path) -> None:
    shelf = shelf_with(tmp_path, 1, 2, 9, 10)
    assert names(shelf) == ["step-00000010", "step-00000009"]
    assert shelf.current() == shelf.folder / "step-00000010"


def test_a_shelf_counts_how_often_a_step_was_saved(tmp_path: Path) -> None:
    shelf = shelf_with(tmp_path, *[5] * 13)
    assert names(shelf) == ["step-00000005-12", "step-00000005-11"]
    assert shelf.current() == shelf.folder / "step-00000005-12"


def test_going_back_never_removes_what_is_pointed_to(tmp_path: Path) -> None:
    shelf = shelf_with(tmp_path, 40, keep=1)
    shelf.add(20, lambda place: write_file(place / "x", b""), keep=1)
    assert names(shelf) == ["step-00000020"]
    assert shelf.current() == shelf.folder / "step-00000020"


def test_a_shelf_falls_back_and_says_why(tmp_path: Path) -> None:
    shelf = shelf_with(tmp_path, 1, 2)
    (shelf.folder / "step-00000002" / "x").unlink()
    ((place, trouble),) = shelf.intact()
    assert place.name == "step-00000001"
    assert trouble == [f"{shelf.folder / 'step-00000002' / 'x'}: is missing"]
    shelf.make_current(place)
    assert shelf.current() == place
    assert names(shelf) == ["step-00000001"]
    remove_folder(place)
    with pytest.raises(StorageError, match="points to 'step-00000001', which is not there"):
        shelf.current()
    shelf.pointer.unlink()
    assert shelf.is_empty()
    assert shelf.current() is None


def test_a_pointer_that_is_missing_is_damage_once_something_was_added(tmp_path: Path) -> None:
    shelf = shelf_with(tmp_path, 1)
    shelf.pointer.unlink()
    with pytest.raises(StorageError, match="pointer: is missing"):
        shelf.current()
    write_file(shelf.pointer, b"none\n")  # the first folder is there, the pointer has not moved
    assert shelf.current() is None
    assert [place.name for place, _ in shelf.intact()] == ["step-00000001"]


def test_a_report_is_whole_and_says_how_it_was_measured(run: Path) -> None:
    seen: list[tuple[int, int]] = []
    report = load(run).evaluate("test", beam=2, progress=lambda done, of: seen.append((done, of)))
    assert report.sentences == len(report.outputs) == len(report.examples) == 4
    scores = {score.key: score for score in report.scores}
    assert scores["bleu"].signature is not None
    assert "tok:13a" in scores["bleu"].signature
    assert scores["perplexity"].value > 1
    assert sum(bucket.sentences for bucket in report.by_length) == 4
    assert seen[-1] == (4, 4)
    place = report.save(run)
    assert find_damage(place) == []
    saved = json.loads((place / "report.json").read_bytes())
    assert saved["decoding"] == {**report.decoding.model_dump(), "width": 2}
    assert saved["versions"]["torch"] == torch.__version__
    assert (place / "outputs.txt").read_text().splitlines() == list(report.outputs)
    assert (place / "sources.txt").read_text().splitlines() == ["ab", "abc", "ab", "cd"]
    assert load(run).evaluate("test", beam=2).save(run) == place


def test_references_of_one_source_are_merged_if_the_recipe_says_so(tmp_path: Path) -> None:
    train(tsv_recipe(tmp_path, "data.merge_references=true"), tmp_path / "run")
    report = load(tmp_path / "run").evaluate("test")
    assert [example.source for example in report.examples] == ["ab", "abc", "cd"]
    assert report.examples[0].references == ("ba", "ab")
    place = report.save(tmp_path / "run")
    assert (place / "references.txt").read_text().splitlines()[0] == "ba\tab"


def test_data_may_lie_elsewhere_when_a_run_is_evaluated(run: Path, tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("ab\tba\n")
    moved = load(run).config.data.model_copy(update={"folder": str(tmp_path)})
    report = load(run).evaluate("test", data=moved)
    assert report.sentences == 1
    assert report.to_json()["data"]["folder"] == str(tmp_path)  # which data were scored is told


def test_only_reports_on_the_same_sentences_are_compared(run: Path, tmp_path: Path) -> None:
    ours: EvaluationReport = load(run).evaluate("test")
    (tmp_path / "test.tsv").write_text("ab\tba\n")
    moved = load(run).config.data.model_copy(update={"folder": str(tmp_path)})
    other = load(run).evaluate("test", data=moved)
    with pytest.raises(DataError, match="were not evaluated on the same sentences"):
        compare_reports(ours, other)
    assert {one.p_value for one in compare_reports(ours, ours)} == {1.0}


def test_a_report_that_is_replaced_is_there_at_every_moment(tmp_path: Path) -> None:
    place = tmp_path / "evaluation" / "test"
    for text in ("one", "two"):
        with atomic_folder(place) as folder:
            (folder / "report.json").write_text(text)
        assert find_damage(place) == []
    assert (place / "report.json").read_text() == "two"
