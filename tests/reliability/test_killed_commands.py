"""Preparing data, packing and unpacking a run: killed at random points, then repeated."""

from collections.abc import Callable
from pathlib import Path

import pytest

from seqloom.data.corpus.disk_cache import STAMPS
from seqloom.runs.archive import pack_run, unpack_run
from seqloom.training.loop import train
from seqloom.training.setup import prepare_data
from support.killing import check_repeated_after_kills
from support.tiny_runs import tiny_config
from support.trials import count_trials, save_results

pytestmark = pytest.mark.slow

KILLS = count_trials(2, 20)
"""Number of kills per command."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed") / "run"
    train(tiny_config("training.steps=2"), folder)
    pack_run(folder, folder.with_name("packed"))
    return folder


def prepare(run: Path, folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        prepare_data(tiny_config("text.tokenizer={kind='subwords', size=12}"), lambda event: None)


def pack(run: Path, folder: Path) -> None:
    pack_run(run, folder / "packed")


def unpack(run: Path, folder: Path) -> None:
    if not (folder / "run").exists():
        unpack_run(run.with_name("packed"), folder / "run")


COMMANDS: dict[str, Callable[[Path, Path], None]] = {
    "prepare": prepare,
    "pack": pack,
    "unpack": unpack,
}


@pytest.mark.parametrize("name", COMMANDS)
def test_repeated_commands_write_the_same_files(name: str, run: Path, tmp_path: Path) -> None:
    # The stamps of prepared data are modification times.
    check_repeated_after_kills(lambda folder: COMMANDS[name](run, folder), tmp_path, KILLS, STAMPS)
    save_results(f"kills.{name}", kills=KILLS, identical_results=KILLS)
