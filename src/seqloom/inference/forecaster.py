"""Forecaster: a trained forecasting model, loaded from its run folder."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seqloom import __version__
from seqloom.config.loading.loader import load_recipe
from seqloom.config.schema.corpora import ForecastCorpusConfig
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.task import ForecastConfig
from seqloom.core.device import best_device
from seqloom.core.errors import ConfigError, DataError, SeqloomError
from seqloom.core.storage import atomic_folder
from seqloom.data.example import Split
from seqloom.data.modalities.series import SeriesWindow, read_windows
from seqloom.data.readers.csv_cells import Numbers, parse_number, read_cells
from seqloom.metrics.score import Score
from seqloom.models.seq2seq import Model
from seqloom.runs.archive import open_run
from seqloom.runs.bundle import Bundle, load_bundle
from seqloom.runs.integrity import CONFIG, EVALUATION
from seqloom.tasks.forecast import Forecast

BATCH_SIZE = 1_024
"""Maximum number of windows per batch."""


@dataclass(frozen=True)
class ForecastReport:
    """Scores of a forecasting run on a split, and scores of simple baselines for comparison.

    outputs:   (N, T, D) forecasts in the units of the data, for N windows, T rows and D columns
    baselines: scores of each baseline, by its name
    settings:  settings of the model that were changed after training
    """

    run: str
    split: Split
    windows: Sequence[SeriesWindow]
    outputs: Numbers
    scores: Sequence[Score]
    baselines: dict[str, list[Score]]
    data: DataConfig
    settings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the report without its forecasts, which `save` writes to separate files."""
        return {
            "run": self.run,
            "split": self.split,
            "windows": len(self.windows),
            "scores": [asdict(score) for score in self.scores],
            "baselines": {
                name: [asdict(score) for score in scores] for name, scores in self.baselines.items()
            },
            "settings": list(self.settings),
            "data": self.data.model_dump(mode="json", include={"folder", self.split}),
            "versions": {"seqloom": __version__, "torch": torch.__version__},
        }

    def save(self, folder: Path) -> Path:
        """Write scores, forecasts and targets to a subfolder of the run folder.

        Returns the path of the subfolder.
        """
        path = folder / EVALUATION / self.split
        with atomic_folder(path) as temporary:
            text = json.dumps(self.to_json(), indent=2, ensure_ascii=False)
            (temporary / "report.json").write_text(text, encoding="utf-8")
            np.save(temporary / "outputs.npy", self.outputs)
            np.save(temporary / "truth.npy", np.stack([window.future for window in self.windows]))
        return path


class Forecaster:
    """A loaded run folder of task 'forecast'. Created by `seqloom.load_forecaster(folder)`."""

    def __init__(self, bundle: Bundle, device: torch.device) -> None:
        if not isinstance(bundle.task, Forecast):
            raise ConfigError(
                f"{bundle.folder}: this run is for {bundle.config.task.kind}, not forecasting. Load it "
                "with seqloom.load"
            )
        self.folder: Path = bundle.folder
        self.config: RunConfig = bundle.config
        self.task: Forecast = bundle.task
        self.model: Model = bundle.model
        self.settings: tuple[str, ...] = bundle.settings
        self._device = device

    @property
    def columns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Two tuples: the names of the columns to forecast, and the names of the context columns.

        Context columns have values that are known in advance. The second tuple is empty if the
        model reads no context columns.
        """
        corpus = self.config.data.train[0]
        assert isinstance(corpus, ForecastCorpusConfig)
        columns, context = corpus.column_names
        return columns, context if self.task.config.use_context else ()

    def forecast(self, windows: Sequence[SeriesWindow]) -> Numbers:
        """Forecast the rows that follow the observed rows of each window.

        Returns (N, T, D) numbers, for N windows, T rows and D columns. The field `future` of the
        windows is not used.
        """
        if not windows:
            return np.zeros((0, self.task.config.predict, len(self.task.scale.errors)))
        scaled = self.task.windows(list(windows), "test")
        outputs = []
        for start in range(0, len(windows), BATCH_SIZE):
            batch = scaled.gather(np.arange(start, min(start + BATCH_SIZE, len(windows))))
            with torch.inference_mode():
                predicted = self.task.free_running(self.model, batch.to(self._device))
            outputs.append(predicted.double().cpu().numpy())
        return self.task.unscaled(np.concatenate(outputs), windows)

    def forecast_file(self, path: Path | str) -> Numbers:
        """Forecast the rows that follow the last observed rows of a CSV file.

        Returns (T, D) numbers, for T rows and D columns.
        """
        return self.forecast([self.window_of(Path(path))])[0]

    def window_of(self, path: Path) -> SeriesWindow:
        """Read the last observed rows of a CSV file as a window.

        Observed rows have values in all columns to forecast. If the model also reads context
        columns, whose values are known in advance, future rows must follow the observed rows: one
        row for each time step to forecast, with values only in the context columns.
        """
        columns, context = self.columns
        names, rows = read_cells(path, [*columns, *context])
        complete = [index for index, (_, row) in enumerate(rows) if all(row[: len(columns)])]
        end = complete[-1] + 1 if complete else 0
        observe, predict = self.task.config.observe, self.task.config.predict
        if end < observe:
            raise DataError(
                f"{path}: has {end} rows with values for {', '.join(columns)}; the run needs "
                f"{observe}. Add rows to the file"
            )
        future = rows[end : end + predict]
        if context and len(future) < predict:
            raise DataError(
                f"{path}: {predict} rows must follow the observed rows; found {len(future)}. "
                f"Add rows with values for {', '.join(context)} and empty cells for "
                f"{', '.join(columns)}"
            )
        observed = np.array(
            [
                [
                    parse_number(cell, path, line, name)
                    for cell, name in zip(row, names, strict=True)
                ]
                for line, row in rows[end - observe : end]
            ]
        )
        future_context = [
            [parse_number(cell, path, line, name) for cell, name in zip(row[len(columns) :], context, strict=True)]
            for line, row in future
        ]  # fmt: skip
        return SeriesWindow(
            observed,
            np.zeros((predict, len(columns))),
            np.array(future_context).reshape(-1, len(context))
            if context
            else np.zeros((predict, 0)),
            str(path),
        )

    def evaluate(self, split: Split = "test", *, data: DataConfig | None = None) -> ForecastReport:
        """Score forecasts on a split of `data`. Default: the data of the recipe."""
        source = self.config.data if data is None else data
        windows = read_windows(source, self.task.config, split)
        outputs = self.forecast(windows)
        return ForecastReport(
            run=str(self.folder),
            split=split,
            windows=windows,
            outputs=outputs,
            scores=self.task.scores(outputs, windows),
            baselines=self.task.baselines(windows),
            data=source,
            settings=self.settings,
        )


def is_forecaster(folder: Path) -> bool:
    """Return True if the folder or packed run contains a run of task 'forecast'."""
    try:
        recipe = load_recipe(open_run(folder) / CONFIG)
        return isinstance(recipe.config.task, ForecastConfig)
    except SeqloomError:
        return False


def load_forecaster(folder: str | Path, settings: Sequence[str] = ()) -> Forecaster:
    """Load a run folder or packed run of task 'forecast'. All of its files are checked first.

    settings: changes to the recipe. The weights must still fit the model
    """
    device = best_device()
    return Forecaster(load_bundle(Path(folder), device, settings), device)
