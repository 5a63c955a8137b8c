"""Replay: fine-tuning also trains on the data of the parent."""

from pathlib import Path
from typing import Any

import pytest
from fine_tuned_runs import FEW_STEPS, copy_recipe, train_parent

import seqloom
from seqloom.config.schema.data import DataConfig
from seqloom.core.errors import ConfigError, NotFoundError
from seqloom.data.example import REPLAY_GROUP
from seqloom.data.preparation.request import fingerprint
from seqloom.data.readers.splits import read_split
from seqloom.runs.recipe import load_recipe
from support.tiny_runs import checkpoint_digests, read_events

pytestmark = pytest.mark.slow


def write_pairs(path: Path, letters: str) -> Path:
    words = [a + b + c for a in letters for b in letters for c in letters]
    lines = [f"{word}\t{word[::-1]}\n" for word in words]
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose dev split is held out of its training file."""
    folder = tmp_path_factory.mktemp("parent")
    path = write_pairs(folder / "old.tsv", "abcd")
    return train_parent(
        folder / "run",
        f"data.train={{kind='tsv', path='{path}'}}",
        "data.dev={kind='hold-out', fraction=0.3}",
        "data.test={kind='hold-out', fraction=0.2}",
    )


def replay_data(parent: Path, **settings: Any) -> DataConfig:
    recipe = copy_recipe(replay={"share": 0.25}, **settings)
    return load_recipe(recipe, parent=parent).config.data


def test_the_parents_dev_and_test_examples_are_not_replayed(parent: Path) -> None:
    data = replay_data(parent)
    assert data.parent_data is not None
    read = [*read_split(data, "train")]
    replayed = {each.source for each in read if each.group == REPLAY_GROUP}
    own = seqloom.load(parent).config.data
    assert replayed == {each.source for each in read_split(own, "train")}
    held_out = {each.source for split in ("dev", "test") for each in read_split(own, split)}
    assert held_out
    assert not replayed & held_out
    assert len(read) - len([each for each in read if each.group == REPLAY_GROUP]) == 40


def test_a_run_reports_the_share_of_the_replayed_examples(parent: Path, tmp_path: Path) -> None:
    recipe = copy_recipe(replay={"share": 0.25})
    seqloom.fine_tune(recipe, parent, tmp_path / "run", settings=FEW_STEPS)
    start = read_events(tmp_path / "run")[0]
    new, replayed = start["parts"]
    assert (new["drawn"], replayed["drawn"]) == (40, round(40 / 3))
    assert replayed["name"] == REPLAY_GROUP
    seqloom.fine_tune(copy_recipe(), parent, tmp_path / "without", settings=FEW_STEPS)
    assert checkpoint_digests(tmp_path / "run") != checkpoint_digests(tmp_path / "without")


def test_the_number_of_pairs_does_not_include_replayed_ones(parent: Path) -> None:
    (note, *_) = load_recipe(copy_recipe(replay={"share": 0.25}), parent=parent).notes
    assert "40 training pairs" in note


def test_a_change_of_the_replayed_file_changes_the_fingerprint(tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "old.tsv", "abc")
    data = f"data.train={{kind='tsv', path='{path}'}}"
    dev = f"data.dev={{kind='tsv', path='{path}'}}"
    train_parent(tmp_path / "parent", data, dev)
    digests = [fingerprint(replay_data(tmp_path / "parent"), "train")]
    write_pairs(path, "abcd")
    digests.append(fingerprint(replay_data(tmp_path / "parent"), "train"))
    assert digests[0] != digests[1]
    path.unlink()
    with pytest.raises(NotFoundError, match=r"old\.tsv[^$]*--set data\.replay=none"):
        seqloom.fine_tune(copy_recipe(replay={"share": 0.5}), tmp_path / "parent", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_replay_without_a_parent_or_for_series_is_an_error(parent: Path) -> None:
    config = load_recipe(copy_recipe(), parent=parent).config
    with pytest.raises(ConfigError, match=r"data\.replay: there is no data to replay"):
        load_recipe(
            {
                "data": {"train": copy_recipe()["data"]["train"], "replay": {}},
                "model": {"encoder": {"kind": "recurrent"}, "decoder": {"kind": "recurrent"}},
                "training": {"steps": 5},
            }
        )
    assert config.data.replay is None
