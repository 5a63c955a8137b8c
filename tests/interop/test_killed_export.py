"""`seqloom export`: killed at random points, then repeated."""

from pathlib import Path

import pytest

from seqloom.core.storage import MANIFEST
from seqloom.inference.run import load
from seqloom.interop.exporter import export_run
from support.killing import check_repeated_after_kills
from support.trials import count_trials, save_results

KILLS = count_trials(2, 20)


@pytest.mark.long
def test_a_repeated_export_writes_the_same_files(exportable_run: Path, tmp_path: Path) -> None:
    run = load(exportable_run, engine="torch")
    export_run(run, "huggingface", tmp_path / "imported")  # imports what the children need

    def export(folder: Path) -> None:
        # A kill after the rename leaves a complete folder.
        if not (folder / "model").exists():
            export_run(run, "huggingface", folder / "model")

    # A kill right after the rename leaves the manifest, which other toolkits do not use.
    check_repeated_after_kills(export, tmp_path / "exports", KILLS, MANIFEST)
    save_results("killed-export", kills=KILLS, identical_results=KILLS)
