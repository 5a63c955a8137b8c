"""Forecast: numbers in, numbers out, on paths and series whose future is known."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import seqloom
import tiny_runs
from seqloom.cli.main import app
from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.task import ForecastConfig
from seqloom.core.errors import ConfigError, DataError, StorageError
from seqloom.data.checks.doctor import examine
from seqloom.data.corpus.scale import Scale, SeriesForm, from_form, to_form
from seqloom.data.corpus.series_dataset import SeriesDataset
from seqloom.data.readers.series import SeriesWindow, read_windows
from seqloom.decoding.rollout import roll_out
from seqloom.metrics.trajectory import extrapolate_linearly, predict_last_value
from seqloom.models.build import build_model
from seqloom.runs.forecaster import Forecaster
from seqloom.tasks.build import learn_task
from seqloom.tasks.forecast import Forecast

FORMS: tuple[SeriesForm, ...] = ("values", "relative", "steps")


def write_series(folder: Path, rows: int = 240) -> None:
    """A wave, and beside it the push that makes it: known beforehand, it tells what comes."""
    generator = np.random.default_rng(5)
    push = generator.normal(size=rows)
    level = 10 + np.cumsum(push)
    lines = ["time,level,push,unused"]
    lines += [f"{n},{a:.6f},{b:.6f},x" for n, (a, b) in enumerate(zip(level, push, strict=True))]
    (folder / "tide.csv").write_text("\n".join(lines) + "\n")


def write_tracks(folder: Path) -> None:
    """Two people who walk straight on, one who leaves early, and one alone at the end."""
    lines = []
    for frame in range(30):
        lines.append(f"{10 * frame}\t1\t{0.5 * frame:.3f}\t1.0")
        lines.append(f"{10 * frame}\t2\t{8 - 0.3 * frame:.3f}\t{0.2 * frame:.3f}")
        if frame < 3:
            lines.append(f"{10 * frame}\t3\t0\t0")
    for frame in range(100, 112):
        lines.append(f"{10 * frame}\t4\t{frame:.3f}\t0")
    (folder / "walk.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("numbers")
    write_series(place)
    write_tracks(place)
    return place


def series(**changes: Any) -> dict[str, Any]:
    return {
        "kind": "series",
        "path": "tide.csv",
        "columns": "level",
        "context": "push",
        **changes,
    }


TRACKS = {"kind": "tracks", "recordings": "walk.txt"}


def recipe(folder: Path, *changes: str, corpus: dict[str, Any] | None = None) -> RunConfig:
    splits = (
        dict.fromkeys(("train", "dev", "test"), corpus)
        if corpus
        else {
            "train": series(rows=[0, 180]),
            "dev": series(rows=[180, 210]),
            "test": series(rows=[210, 240]),
        }
    )
    tables = {
        "task": {"kind": "forecast", "observe": 6, "predict": 4, "representation": "relative"},
        "data": {"folder": str(folder), **splits},
        "model": {
            "encoder": {"kind": "recurrent", "width": 16, "direction": "forward"},
            "decoder": {
                "kind": "recurrent",
                "width": 16,
                "initial_state": "copy",
                "attention": {"kind": "none"},
            },
        },
        "training": {
            "steps": 150,
            "batch_tokens": 600,
            "evaluate_every": 50,
            "checkpoint_every": 150,
            "optimizer": {"learning_rate": 1e-2},
            "schedule": {"kind": "cosine", "warmup": 10},
        },
    }
    return load_recipe(tables, list(changes)).config


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Forecaster:
    """Trained, moved elsewhere, and loaded from there."""
    place = tmp_path_factory.mktemp("runs")
    seqloom.train(recipe(folder), place / "first")
    shutil.move(place / "first", place / "moved")
    return seqloom.load_forecaster(place / "moved")


def test_context_tells_what_comes(run: Forecaster) -> None:
    """The push moves the level, so whoever listens to it beats both lines by far."""
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


@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("task.rollout=true",),
        (ATTENTION,),
        TRANSFORMERS,
        ("task.representation=differences",),
        ("task.representation=values",),
    ],
    ids=["taught", "rolled out", "attention", "Transformer", "steps", "values"],
)
def test_every_way_to_learn_learns(changes: tuple[str, ...], folder: Path, tmp_path: Path) -> None:
    losses: list[float] = []
    seqloom.train(
        recipe(folder, *changes, "training.steps=60", "training.evaluate_every=20"),
        tmp_path / "run",
        report=lambda event: (
            losses.append(event.data["loss"]) if event.kind == "evaluate" else None
        ),
    )
    assert losses[-1] < losses[0]


def batch_and_model(folder: Path, *changes: str) -> tuple[Any, Forecast, Any]:
    config = recipe(folder, *changes)
    task = learn_task(config)
    assert isinstance(task, Forecast)
    torch.manual_seed(1)
    model = build_model(config.model, task.signature).eval()
    corpus = task.corpus(config, "train", lambda count: None)
    return corpus.gather(np.arange(5)), task, model


@pytest.mark.parametrize("changes", [(), (ATTENTION,), TRANSFORMERS], ids=["GRU", "attn", "tf"])
def test_fed_the_same_a_rollout_is_teacher_forcing(changes: tuple[str, ...], folder: Path) -> None:
    """Teach on a rollout's own outputs, and the rollout comes out again."""
    batch, task, model = batch_and_model(folder, *changes)
    with torch.inference_mode():
        rolled = task.free_running(model, batch)
        inputs = batch.inputs.values.clone()
        inputs[:, 1:, :1] = rolled[:, :-1]
        memory = model.encode(batch.source, batch.size)
        taught = model.decoder(inputs, memory).logits()
    torch.testing.assert_close(rolled, taught, atol=1e-5, rtol=1e-4)


def test_a_rollout_never_sees_the_future(folder: Path) -> None:
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


def test_context_is_heard_at_its_own_step(folder: Path) -> None:
    """What is changed at step t changes outputs from t on, and none before."""
    batch, _, model = batch_and_model(folder)
    first, context = batch.inputs.values[:, 0, :1], batch.inputs.values[..., 1:]
    memory = model.encode(batch.source, batch.size)
    other = context.clone()
    other[:, 2] += 1
    one, two = (roll_out(model.decoder, memory, first, known) for known in (context, other))
    assert torch.equal(one[:, :2], two[:, :2])
    assert (one[:, 2:] != two[:, 2:]).all()


numbers = st.integers(-50, 50).map(float)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(numbers, numbers), min_size=7, max_size=7),
    form=st.sampled_from(FORMS),
)
def test_a_form_is_undone_exactly(rows: list[tuple[float, float]], form: SeriesForm) -> None:
    path = np.array(rows)
    window = SeriesWindow(path[:4], path[4:], np.zeros((3, 0)), "here")
    _, future = to_form(window, form)
    np.testing.assert_allclose(from_form(future, path[3:4], form), path[4:], atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(angle=st.integers(0, 50))
def test_turning_keeps_distances(angle: int) -> None:
    path = np.random.default_rng(angle).normal(size=(3, 7, 2))
    windows = [SeriesWindow(one[:4], one[4:], np.zeros((3, 0)), "") for one in path]
    scale = Scale.learn(windows, "steps", rotated=True)
    still = SeriesDataset.of(windows, "steps", scale, "train", rotation_seed=angle)
    turned = still.for_epoch(angle)
    np.testing.assert_allclose(
        np.linalg.norm(still.future, axis=2), np.linalg.norm(turned.future, axis=2), rtol=1e-4
    )
    assert not np.allclose(still.future, turned.future)
    assert np.allclose(turned.future, still.for_epoch(angle).future)


def test_every_whole_walk_among_others_is_a_window(folder: Path) -> None:
    data = DataConfig.model_validate({"folder": str(folder), "train": TRACKS})
    task = ForecastConfig(observe=6, predict=4)
    windows = read_windows(data, task, "train")
    assert len(windows) == 2 * (30 - 10 + 1)
    np.testing.assert_allclose(windows[0].observed[:, 0], 0.5 * np.arange(6), atol=1e-9)
    alone = read_windows(
        DataConfig.model_validate(
            {"folder": str(folder), "train": {**TRACKS, "min_pedestrians": 1}}
        ),
        task,
        "train",
    )
    assert len(alone) > len(windows)


def test_rows_bound_what_is_forecast(folder: Path) -> None:
    data = DataConfig.model_validate({"folder": str(folder), "train": series(rows=[100, 104])})
    [window] = read_windows(data, ForecastConfig(observe=6, predict=4), "train")
    assert window.where.endswith("tide.csv:96")


def test_a_line_goes_on_as_a_line() -> None:
    walk = np.stack([np.arange(8.0), 3 - 2 * np.arange(8.0)], axis=1)[None]
    np.testing.assert_allclose(extrapolate_linearly(walk, 3)[0], [[8, -13], [9, -15], [10, -17]])
    np.testing.assert_allclose(predict_last_value(walk, 2)[0], [[7, -11], [7, -11]])


def test_people_who_walk_straight_are_followed(folder: Path, tmp_path: Path) -> None:
    changes = (
        "task.representation=differences",
        "task.random_rotation=true",
        "training.steps=120",
        "task.rollout=true",
    )
    seqloom.train(recipe(folder, *changes, corpus=TRACKS), tmp_path / "run")
    scores = {
        one.name: one.value for one in seqloom.load_forecaster(tmp_path / "run").evaluate().scores
    }
    assert scores["ADE"] < 0.5
    assert scores["ADE"] < scores["FDE"]


def blank_ahead(folder: Path, place: Path, rows: int) -> Path:
    """The series with the last rows' levels taken out, and what they were."""
    lines = (folder / "tide.csv").read_text().splitlines()
    told = lines[:-rows]
    for line in lines[-rows:]:
        time, _, push, rest = line.split(",")
        told.append(f"{time},,{push},{rest}")
    (place / "ahead.csv").write_text("\n".join(told) + "\n")
    return place / "ahead.csv"


def test_the_command_goes_on_with_a_file(run: Forecaster, folder: Path, tmp_path: Path) -> None:
    path = blank_ahead(folder, tmp_path, 4)
    result = CliRunner().invoke(
        app, ["forecast", str(run.folder), str(path)], catch_exceptions=False
    )
    head, *rows = result.stdout.splitlines()
    assert head == "level"
    found = np.array([float(row) for row in rows])
    np.testing.assert_allclose(found, run.forecast_file(path)[:, 0], rtol=1e-5)
    truth = [
        float(line.split(",")[1]) for line in (folder / "tide.csv").read_text().splitlines()[-4:]
    ]
    assert np.abs(found - truth).mean() < 2


def test_the_command_evaluates_beside_baselines(run: Forecaster) -> None:
    result = CliRunner().invoke(app, ["evaluate", str(run.folder)], catch_exceptions=False)
    assert "last value" in result.stdout
    assert "straight line" in result.stdout
    as_json = CliRunner().invoke(
        app, ["evaluate", str(run.folder), "--json"], catch_exceptions=False
    )
    assert {score["name"] for score in json.loads(as_json.stdout)["scores"]} == {
        "MSE",
        "MAE",
        "ADE",
        "FDE",
    }


def test_a_window_alone_is_forecast_as_among_others(run: Forecaster) -> None:
    windows = read_windows(run.config.data, run.task.config, "test")
    together = run.forecast(windows)
    for place in (0, len(windows) - 1):
        np.testing.assert_allclose(run.forecast([windows[place]])[0], together[place], atol=1e-4)


def test_what_is_wrong_with_a_file_is_said(run: Forecaster, folder: Path, tmp_path: Path) -> None:
    short = tmp_path / "short.csv"
    short.write_text("level,push\n1,2\n")
    with pytest.raises(DataError, match=r"has 1 rows with values for level; the run reads 6"):
        run.forecast_file(short)
    with pytest.raises(DataError, match=r"of the next 4 rows must be given"):
        run.forecast_file(folder / "tide.csv")
    short.write_text("height,push\n1,2\n")
    with pytest.raises(DataError, match=r"there is no column level; the columns are height, push"):
        run.forecast_file(short)
    short.write_text("level,push\n1,2\n3\n")
    with pytest.raises(DataError, match=r"short.csv:3: 1 cells where the first line names 2"):
        run.forecast_file(short)


def test_what_is_wrong_with_the_data_is_said(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "tide.csv").write_text("level,push\n1,2\nx,3\n")
    with pytest.raises(DataError, match=r"tide.csv:3: column level: 'x' is no number"):
        learn_task(recipe(tmp_path, corpus=series()))
    (tmp_path / "tide.csv").write_text("level,push\n1,2\nnan,3\n")
    with pytest.raises(DataError, match=r"is not finite"):
        learn_task(recipe(tmp_path, corpus=series()))
    (tmp_path / "tide.csv").write_text("level,push\n1,2\n")
    with pytest.raises(DataError, match=r"there is no window of 6 \+ 4 rows"):
        learn_task(recipe(tmp_path, corpus=series()))
    with pytest.raises(DataError, match=r"has 240 rows, but rows = \[0, 999\]"):
        learn_task(recipe(folder, corpus=series(rows=[0, 999])))
    (tmp_path / "walk.txt").write_text("1 2 3\n")
    with pytest.raises(DataError, match=r"walk.txt:1: 3 cells; a line is frame, walker, x, y"):
        learn_task(recipe(tmp_path, corpus=TRACKS))
    (tmp_path / "splits.json").write_text('{"eth": {}}')
    with pytest.raises(DataError, match=r"there is no scene 'moon', but eth"):
        learn_task(recipe(tmp_path, corpus={"kind": "tracks", "scene": "moon"}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("training.label_smoothing=0.1", "are about probabilities"),
        ("training.r_drop=1.0", "are about probabilities"),
        (
            "model={tie='output', encoder={kind='recurrent'}, decoder={kind='recurrent', readout='tanh'}}",
            "no embeddings",
        ),
        ("training.stopping.score=bleu", "judged by its loss"),
        ("training.decoder_input={kind='free-running'}", "numbers are fed back in by task.rollout"),
        ("training.batching=packed", "windows are all of one size"),
        ("task.random_rotation=true", "only a plane can be turned"),
        ("data.train={kind='tracks'}", "give either recordings or a scene"),
    ],
)
def test_switches_that_mean_nothing_for_numbers_are_refused(
    change: str, message: str, folder: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        recipe(folder, change)


def test_a_transformer_cannot_roll_out_in_training(folder: Path) -> None:
    with pytest.raises(ConfigError, match="use a recurrent decoder, or rollout = false"):
        recipe(folder, *TRANSFORMERS, "task.rollout=true")


def test_words_and_numbers_are_not_mixed_up(run: Forecaster, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"forecasts numbers; use `seqloom forecast`"):
        seqloom.load(run.folder)
    seqloom.train(tiny_runs.recipe("training.steps=1"), tmp_path / "run")
    with pytest.raises(ConfigError, match=r"is for translation, and forecasts no numbers"):
        seqloom.load_forecaster(tmp_path / "run")
    with pytest.raises(ConfigError, match=r"'series' holds numbers, not text"):
        seqloom.train(tiny_runs.recipe(f"data.train={{kind='series', path='{folder}/tide.csv', columns='level'}}"), tmp_path / "other")  # fmt: skip
    with pytest.raises(ConfigError, match=r"'synthetic' has no numbers to forecast"):
        learn_task(recipe(folder, corpus={"kind": "synthetic", "task": "copy", "examples": 5}))


def test_a_damaged_scale_is_noticed(run: Forecaster, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run.folder, copy)
    (copy / "text" / "scale.json").write_text("{}")
    with pytest.raises(StorageError, match="damaged"):
        seqloom.load_forecaster(copy)


def test_doctor_counts_windows(folder: Path, tmp_path: Path) -> None:
    found = examine(recipe(folder))
    assert [survey.examples for survey in found.statistics] == [171, 27, 27]
    assert not found.has_errors
    assert examine(recipe(tmp_path)).has_errors
