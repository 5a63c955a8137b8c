"""Experiment trackers: TensorBoard, MLflow, and Weights & Biases."""

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Protocol, assert_never

from seqloom.core.extras import import_optional
from seqloom.core.storage import storage_errors
from seqloom.jobs.tracking.journal import Scalars

TrackerName = Literal["tensorboard", "mlflow", "wandb"]
PROJECT = "seqloom"
"""Name of the experiment in MLflow, and of the project in Weights & Biases."""


class Tracker(Protocol):
    """An experiment tracker.

    The constructor receives the recipe. `write` receives the numbers of one training step or
    evaluation.
    """

    def write(self, scalars: Scalars) -> None: ...

    def close(self) -> None: ...


def open_tracker(name: TrackerName, run: Path, folder: Path) -> Tracker:
    """Create an experiment tracker for a run, and write the recipe of the run to it.

    run:    the run folder
    folder: folder that the tracker writes to. MLflow does not use it if MLFLOW_TRACKING_URI is set.
    """
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    recipe = tomllib.loads((run / "config.toml").read_text(encoding="utf-8"))
    run_name = run.resolve().name
    match name:
        case "tensorboard":
            return TensorBoardTracker(recipe, folder / run_name)
        case "mlflow":
            return MlflowTracker(recipe, run_name, folder)
        case "wandb":
            return WandbTracker(recipe, run_name, folder)
        case _:
            assert_never(name)


class TensorBoardTracker:
    """Writes a TensorBoard event file. An earlier file of the same run is replaced."""

    def __init__(self, recipe: dict[str, Any], folder: Path) -> None:
        module: Any = import_optional("tensorboard", "tracking", "--to tensorboard") and (
            import_optional("torch.utils.tensorboard", "tracking", "--to tensorboard")
        )
        for path in folder.glob("events.out.tfevents.*"):
            path.unlink()
        self._writer = module.SummaryWriter(str(folder))
        lines = (f"    {name} = {value}" for name, value in _flatten(recipe))
        self._writer.add_text("recipe", "\n".join(lines))

    def write(self, scalars: Scalars) -> None:
        for name, value in scalars.values.items():
            self._writer.add_scalar(name, value, scalars.step, walltime=scalars.time)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class MlflowTracker:
    """Writes an MLflow run to the address in the environment variable MLFLOW_TRACKING_URI.

    If the variable is not set, writes to the SQLite database mlflow.db in `folder`.
    """

    def __init__(self, recipe: dict[str, Any], name: str, folder: Path) -> None:
        mlflow: Any = import_optional("mlflow", "mlflow", "--to mlflow")
        uri = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{folder.absolute()}/mlflow.db"
        self._client = mlflow.MlflowClient(tracking_uri=uri)
        experiment = self._client.get_experiment_by_name(PROJECT)
        identifier = (
            self._client.create_experiment(PROJECT)
            if experiment is None
            else experiment.experiment_id
        )
        self._run = self._client.create_run(identifier, run_name=name).info.run_id
        for key, value in _flatten(recipe):
            self._client.log_param(self._run, key, value)

    def write(self, scalars: Scalars) -> None:
        milliseconds = round(scalars.time * 1000)
        for name, value in scalars.values.items():
            self._client.log_metric(self._run, name, value, milliseconds, scalars.step)

    def close(self) -> None:
        self._client.set_terminated(self._run)


class WandbTracker:
    """Writes a Weights & Biases run. It is stored offline unless WANDB_MODE is set."""

    def __init__(self, recipe: dict[str, Any], name: str, folder: Path) -> None:
        wandb: Any = import_optional("wandb", "wandb", "--to wandb")
        self._run = wandb.init(
            project=PROJECT,
            name=name,
            dir=str(folder),
            config=recipe,
            mode=os.environ.get("WANDB_MODE", "offline"),
        )

    def write(self, scalars: Scalars) -> None:
        self._run.log(scalars.values, step=scalars.step)

    def close(self) -> None:
        self._run.finish()


def _flatten(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each setting of a recipe: its full key, such as training.steps, and its value."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
