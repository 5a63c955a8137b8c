"""Forecaster: a trained forecasting run in use."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import seqloom
from seqloom.cli.main import app
from seqloom.core.errors import ConfigError, DataError, StorageError
from seqloom.data.modalities.series import read_windows
from seqloom.inference.forecaster import Forecaster
from seqloom.tasks.build import learn_task
from support.tiny_runs import tiny_config
from support.tiny_series import forecast_config, write_series

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("series")
    write_series(folder)
    return folder


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Forecaster:
    """Trained, moved, and loaded from the new folder."""
    runs = tmp_path_factory.mktemp("runs")
    seqloom.train(forecast_config(folder), runs / "first")
    shutil.move(runs / "first", runs / "moved")
    return seqloom.load_forecaster(runs / "moved")


def write_with_empty_levels(folder: Path, path: Path, rows: int) -> Path:
    """Write the series with the level of the last rows removed."""
    lines = (folder / "tide.csv").read_text().splitlines()
    kept = lines[:-rows]
    for line in lines[-rows:]:
        time, _, push, rest = line.split(",")
        kept.append(f"{time},,{push},{rest}")
    path.write_text("\n".join(kept) + "\n")
    return path


def test_forecast_command_continues_a_file(run: Forecaster, folder: Path, tmp_path: Path) -> None:
    path = write_with_empty_levels(folder, tmp_path / "future.csv", 4)
    result = CliRunner().invoke(
        app, ["forecast", str(run.folder), str(path)], catch_exceptions=False
    )
    header, *rows = result.stdout.splitlines()
    assert header == "level"
    printed = np.array([float(row) for row in rows])
    np.testing.assert_allclose(printed, run.forecast_file(str(path))[:, 0], rtol=1e-5)
    expected = [
        float(line.split(",")[1]) for line in (folder / "tide.csv").read_text().splitlines()[-4:]
    ]
    assert np.abs(printed - expected).mean() < 2


def test_evaluate_command_prints_scores_and_baselines(run: Forecaster) -> None:
    result = CliRunner().invoke(app, ["evaluate", str(run.folder)], catch_exceptions=False)
    assert "last value" in result.stdout
    assert "straight line" in result.stdout
    as_json = CliRunner().invoke(
        app, ["evaluate", str(run.folder), "--json"], catch_exceptions=False
    )
    names = {score["name"] for score in json.loads(as_json.stdout)["scores"]}
    assert names == {"MSE", "MAE", "ADE", "FDE"}


def test_forecast_does_not_depend_on_the_batch(run: Forecaster) -> None:
    windows = read_windows(run.config.data, run.task.config, "test")
    outputs = run.forecast(windows)
    for index in (0, len(windows) - 1):
        np.testing.assert_allclose(run.forecast([windows[index]])[0], outputs[index], atol=1e-4)


def test_invalid_files_are_an_error(run: Forecaster, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "short.csv"
    path.write_text("level,push\n1,2\n")
    with pytest.raises(DataError, match="has 1 rows with values for level; the run needs 6"):
        run.forecast_file(path)
    message = (
        r"4 rows must follow .* found 0\. Add rows with values for push and empty cells for level"
    )
    with pytest.raises(DataError, match=message):
        run.forecast_file(folder / "tide.csv")
    path.write_text("height,push\n1,2\n")
    with pytest.raises(DataError, match="there is no column level; the columns are height, push"):
        run.forecast_file(path)
    path.write_text("level,push\n1,2\n3\n")
    with pytest.raises(DataError, match=r"short\.csv:3: .*1 cells"):
        run.forecast_file(path)


def test_text_runs_and_forecasting_runs_have_different_loaders(
    run: Forecaster, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"this is a forecasting run\. Use `seqloom forecast`"):
        seqloom.load(run.folder)
    seqloom.train(tiny_config("training.steps=1"), tmp_path / "run")
    with pytest.raises(ConfigError, match="this run is for translation, not forecasting"):
        seqloom.load_forecaster(tmp_path / "run")


def test_text_tasks_and_forecasting_read_different_data(folder: Path, tmp_path: Path) -> None:
    series = f"data.train={{kind='series', path='{folder}/tide.csv', columns='level'}}"
    with pytest.raises(ConfigError, match="the task 'translation' cannot use 'series'"):
        seqloom.train(tiny_config(series), tmp_path / "run")
    synthetic = {"kind": "synthetic", "task": "copy", "examples": 5}
    with pytest.raises(ConfigError, match="the task 'forecast' cannot use 'synthetic'"):
        learn_task(forecast_config(folder, corpus=synthetic))


def test_damaged_scale_is_an_error(run: Forecaster, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run.folder, copy)
    (copy / "text" / "scale.json").write_text("{}")
    with pytest.raises(StorageError, match="damaged"):
        seqloom.load_forecaster(copy)
