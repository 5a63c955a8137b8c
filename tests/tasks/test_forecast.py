"""Forecasting of series and trajectories."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import seqloom
from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.task import ForecastConfig
from seqloom.core.errors import ConfigError, DataError
from seqloom.data.checks.doctor import examine
from seqloom.data.modalities.series import (
    Scale,
    SeriesDataset,
    SeriesForm,
    SeriesWindow,
    from_form,
    read_windows,
    to_form,
)
from seqloom.decoding.generation import roll_out
from seqloom.inference.forecaster import Forecaster
from seqloom.metrics.trajectory import extrapolate_linearly, predict_last_value
from seqloom.models.build import build_model
from seqloom.tasks.build import learn_task
from seqloom.tasks.forecast import Forecast
from support.tiny_series import TRACKS, forecast_config, series, write_series, write_tracks

FORMS: tuple[SeriesForm, ...] = ("values", "relative", "differences")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("series")
    write_series(folder)
    write_tracks(folder)
    return folder


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Forecaster:
    """Trained, moved, and loaded from the new folder."""
    runs = tmp_path_factory.mktemp("runs")
    seqloom.train(forecast_config(folder), runs / "first")
    shutil.move(runs / "first", runs / "moved")
    return seqloom.load_forecaster(runs / "moved")


@pytest.mark.slow
def test_context_improves_on_the_baselines(run: Forecaster) -> None:
    """The context determines the level, which the baselines do not use."""
    report = run.evaluate("test")
    [error, *_] = report.scores
    for scores in report.baselines.values():
        assert error.value < 0.5 * scores[0].value


TRANSFORMERS = tuple(
    f"model.{side}={{kind='transformer', width=16, layers=1, feedforward=32, "
    "attention={heads=2}, dropout=0.0}"
    for side in ("encoder", "decoder")
)
ATTENTION = "model.decoder={kind='recurrent', width=16, attention={projection='linear'}}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("task.rollout=true",),
        (ATTENTION,),
        TRANSFORMERS,
        ("task.representation=differences",),
        ("task.representation=values",),
    ],
    ids=["teacher forcing", "free running", "attention", "Transformer", "differences", "values"],
)
def test_training_reduces_the_dev_loss(
    settings: tuple[str, ...], folder: Path, tmp_path: Path
) -> None:
    losses: list[float] = []
    seqloom.train(
        forecast_config(folder, *settings, "training.steps=60", "training.evaluate_every=20"),
        tmp_path / "run",
        report=lambda event: (
            losses.append(event.data["loss"]) if event.kind == "evaluate" else None
        ),
    )
    assert losses[-1] < losses[0]


def batch_and_model(folder: Path, *settings: str) -> tuple[Any, Forecast, Any]:
    config = forecast_config(folder, *settings)
    task = learn_task(config)
    assert isinstance(task, Forecast)
    torch.manual_seed(1)
    model = build_model(config.model, task.signature).eval()
    corpus = task.corpus(config, "train", lambda count: None)
    return corpus.gather(np.arange(5)), task, model


@pytest.mark.parametrize("settings", [(), (ATTENTION,), TRANSFORMERS], ids=["GRU", "attn", "tf"])
def test_free_running_equals_teacher_forcing_on_its_own_outputs(
    settings: tuple[str, ...], folder: Path
) -> None:
    batch, task, model = batch_and_model(folder, *settings)
    with torch.inference_mode():
        free_running = task.free_running(model, batch)
        inputs = batch.inputs.values.clone()
        inputs[:, 1:, :1] = free_running[:, :-1]
        memory = model.encode(batch.source, batch.size)
        teacher_forced = model.decoder(inputs, memory).logits()
    torch.testing.assert_close(free_running, teacher_forced, atol=1e-5, rtol=1e-4)


def test_free_running_does_not_use_future_values(folder: Path) -> None:
    batch, task, model = batch_and_model(folder)
    inputs = batch.inputs.values.clone()
    inputs[:, 1:, 0] = 1e6
    changed = type(batch)(
        batch.source, type(batch.inputs)(inputs, batch.inputs.lengths), batch.targets
    )
    with torch.inference_mode():
        torch.testing.assert_close(
            task.free_running(model, batch), task.free_running(model, changed)
        )


def test_context_of_a_step_changes_outputs_from_that_step_on(folder: Path) -> None:
    batch, _, model = batch_and_model(folder)
    first, context = batch.inputs.values[:, 0, :1], batch.inputs.values[..., 1:]
    memory = model.encode(batch.source, batch.size)
    changed = context.clone()
    changed[:, 2] += 1
    before, after = (roll_out(model.decoder, memory, first, each) for each in (context, changed))
    assert torch.equal(before[:, :2], after[:, :2])
    assert (before[:, 2:] != after[:, 2:]).all()


numbers = st.integers(-50, 50).map(float)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(numbers, numbers), min_size=7, max_size=7),
    form=st.sampled_from(FORMS),
)
def test_unformed_inverts_formed(rows: list[tuple[float, float]], form: SeriesForm) -> None:
    path = np.array(rows)
    window = SeriesWindow(path[:4], path[4:], np.zeros((3, 0)), "here")
    _, future = to_form(window, form)
    np.testing.assert_allclose(from_form(future, path[3:4], form), path[4:], atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 50))
def test_rotation_keeps_distances(seed: int) -> None:
    paths = np.random.default_rng(seed).normal(size=(3, 7, 2))
    windows = [SeriesWindow(path[:4], path[4:], np.zeros((3, 0)), "") for path in paths]
    scale = Scale.learn(windows, "differences", rotated=True)
    original = SeriesDataset.of(windows, "differences", scale, "train", rotation_seed=seed)
    rotated = original.for_epoch(seed)
    np.testing.assert_allclose(
        np.linalg.norm(original.future, axis=2), np.linalg.norm(rotated.future, axis=2), rtol=1e-4
    )
    assert not np.allclose(original.future, rotated.future)
    assert np.allclose(rotated.future, original.for_epoch(seed).future)


def test_windows_of_tracks_need_enough_frames_and_companions(folder: Path) -> None:
    data = DataConfig.model_validate({"folder": str(folder), "train": TRACKS})
    task = ForecastConfig(observe=6, predict=4)
    windows = read_windows(data, task, "train")
    assert len(windows) == 2 * (30 - 10 + 1)
    np.testing.assert_allclose(windows[0].observed[:, 0], 0.5 * np.arange(6), atol=1e-9)
    with_single_walkers = read_windows(
        DataConfig.model_validate(
            {"folder": str(folder), "train": {**TRACKS, "min_pedestrians": 1}}
        ),
        task,
        "train",
    )
    assert len(with_single_walkers) > len(windows)


def test_rows_select_the_forecast_rows(folder: Path) -> None:
    data = DataConfig.model_validate({"folder": str(folder), "train": series(rows=[100, 104])})
    [window] = read_windows(data, ForecastConfig(observe=6, predict=4), "train")
    assert window.where.endswith("tide.csv:96")


def test_series_of_different_widths_are_an_error(folder: Path) -> None:
    data = DataConfig.model_validate(
        {"folder": str(folder), "train": [series(), series(columns=["level", "push"], context=[])]}
    )
    with pytest.raises(ConfigError, match="all series must have the same number of columns"):
        read_windows(data, ForecastConfig(observe=6, predict=4), "train")


def test_context_that_is_not_used_may_have_different_widths(folder: Path) -> None:
    data = DataConfig.model_validate(
        {"folder": str(folder), "train": [series(), series(context=[])]}
    )
    task = ForecastConfig(observe=6, predict=4, use_context=False)
    config = load_recipe("robot").config.model_copy(update={"task": task, "data": data})
    assert Forecast.learn(config).signature.context == 0
    task = task.model_copy(update={"use_context": True})
    with pytest.raises(ConfigError, match="the same number of context columns"):
        Forecast.learn(config.model_copy(update={"task": task}))


def test_baselines_repeat_the_last_value_or_extrapolate_linearly() -> None:
    walk = np.stack([np.arange(8.0), 3 - 2 * np.arange(8.0)], axis=1)[None]
    np.testing.assert_allclose(extrapolate_linearly(walk, 3)[0], [[8, -13], [9, -15], [10, -17]])
    np.testing.assert_allclose(predict_last_value(walk, 2)[0], [[7, -11], [7, -11]])


@pytest.mark.slow
def test_straight_walks_are_learned(folder: Path, tmp_path: Path) -> None:
    settings = (
        "task.representation=differences",
        "task.random_rotation=true",
        "training.steps=120",
        "task.rollout=true",
    )
    seqloom.train(forecast_config(folder, *settings, corpus=TRACKS), tmp_path / "run")
    report = seqloom.load_forecaster(tmp_path / "run").evaluate()
    scores = {score.name: score.value for score in report.scores}
    assert scores["ADE"] < 0.5
    assert scores["ADE"] < scores["FDE"]


def test_invalid_data_is_an_error_with_its_position(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "tide.csv").write_text("level,push\n1,2\nx,3\n")
    with pytest.raises(DataError, match=r"tide.csv:3: column level: 'x' is"):
        learn_task(forecast_config(tmp_path, corpus=series()))
    (tmp_path / "tide.csv").write_text("level,push\n1,2\nnan,3\n")
    with pytest.raises(DataError, match=r"is not finite"):
        learn_task(forecast_config(tmp_path, corpus=series()))
    (tmp_path / "tide.csv").write_text("level,push\n1,2\n")
    with pytest.raises(DataError, match=r"there is no window of 6 \+ 4 rows"):
        learn_task(forecast_config(tmp_path, corpus=series()))
    with pytest.raises(DataError, match=r"has 240 rows, but the recipe sets rows = \[0, 999\]"):
        learn_task(forecast_config(folder, corpus=series(rows=[0, 999])))
    (tmp_path / "walk.txt").write_text("1 2 3\n")
    with pytest.raises(DataError, match=r"walk.txt:1: .*3 cells"):
        learn_task(forecast_config(tmp_path, corpus=TRACKS))
    (tmp_path / "splits.json").write_text('{"eth": {}}')
    with pytest.raises(DataError, match=r"there is no scene 'moon'; the scenes are eth"):
        learn_task(forecast_config(tmp_path, corpus={"kind": "tracks", "scene": "moon"}))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("training.label_smoothing=0.1", "are about probabilities"),
        ("training.r_drop=1.0", "are about probabilities"),
        (
            "model={tie='output', encoder={kind='recurrent'}, decoder={kind='recurrent', readout='tanh'}}",
            "no embeddings",
        ),
        ("training.stopping.score=bleu", "judged by its loss"),
        ("training.batching=packed", "windows are all of one size"),
        ("task.random_rotation=true", "task.random_rotation: "),
        ("data.train={kind='tracks'}", "set exactly one of the two settings recordings"),
    ],
)
def test_settings_that_do_not_apply_to_forecasting_are_an_error(
    setting: str, message: str, folder: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        forecast_config(folder, setting)


def test_doctor_counts_windows(folder: Path, tmp_path: Path) -> None:
    found = examine(forecast_config(folder))
    assert [survey.examples for survey in found.statistics] == [171, 27, 27]
    assert not found.has_errors
    assert examine(forecast_config(tmp_path)).has_errors
