"""Forecasting: the next rows of a real-valued sequence."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from torch import Tensor

from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.task import ForecastConfig
from seqloom.core.batch import Batch
from seqloom.core.signature import Signature, Vectors
from seqloom.data.corpus.scale import Scale, from_form
from seqloom.data.corpus.series_dataset import SeriesDataset
from seqloom.data.example import Split
from seqloom.data.readers.series import Numbers, SeriesWindow, read_windows, series_widths
from seqloom.decoding.generation import roll_out
from seqloom.metrics.score import Score
from seqloom.metrics.trajectory import (
    absolute_error,
    average_displacement,
    extrapolate_linearly,
    final_displacement,
    predict_last_value,
    squared_error,
)
from seqloom.models.seq2seq import Model
from seqloom.tasks.losses import LIKELIHOOD, Objective


class Forecast:
    """Predicts the vectors that follow the observed ones, with a squared loss."""

    def __init__(self, config: ForecastConfig, scale: Scale) -> None:
        self.config = config
        self.scale = scale
        columns = len(scale.errors)
        context = len(scale.mean) - columns
        self.signature = Signature(
            Vectors(columns + context), Vectors(columns), shared=False, context=context
        )

    @classmethod
    def learn(cls, config: ForecastConfig, data: DataConfig) -> Self:
        """Compute the scale from the training split. All later forecasts use it."""
        windows = read_windows(data, config, "train")
        series_widths(data)  # raises an error if the series have different columns
        return cls(config, Scale.learn(windows, config.representation, config.random_rotation))

    @classmethod
    def load(cls, config: ForecastConfig, folder: Path) -> Self:
        return cls(config, Scale.load(folder))

    def save(self, folder: Path) -> None:
        self.scale.save(folder)

    def corpus(
        self, config: RunConfig, split: Split, progress: Callable[[int], None]
    ) -> SeriesDataset:
        windows = read_windows(config.data, self.config, split)
        progress(len(windows))
        turns = config.training.seed if self.config.random_rotation and split == "train" else None
        return self.windows(windows, split, turns)

    def windows(
        self, windows: list[SeriesWindow], split: str, turns: int | None = None
    ) -> SeriesDataset:
        """SeriesDataset, scaled for the model."""
        return SeriesDataset.of(windows, self.config.representation, self.scale, split, turns)

    def loss(self, model: Model, batch: Batch, objective: Objective = LIKELIHOOD) -> Tensor:
        """The mean squared error of a row, summed over positions."""
        assert objective == LIKELIHOOD
        is_free = self.config.rollout
        outputs = self.free_running(model, batch) if is_free else model(batch).logits()  # (B, T, D)
        return ((outputs - batch.targets.values) ** 2).mean(-1).sum()

    def free_running(self, model: Model, batch: Batch) -> Tensor:
        """(B, T, D) scaled outputs, each fed back as the next input.

        Of the future rows only the context columns are used.
        """
        columns = batch.targets.values.shape[-1]
        inputs = batch.inputs.values
        memory = model.encode(batch.source, batch.size)
        return roll_out(model.decoder, memory, inputs[:, 0, :columns], inputs[..., columns:])

    def unscaled(self, outputs: Numbers, windows: Sequence[SeriesWindow]) -> Numbers:
        """(N, T, D) scaled model outputs -> in the units of the data"""
        columns = outputs.shape[-1]
        last = np.stack([one.observed[-1:, :columns] for one in windows])
        scaled = outputs * self.scale.deviation[:columns] + self.scale.mean[:columns]
        return from_form(scaled, last, self.config.representation)

    def scores(self, outputs: Numbers, windows: Sequence[SeriesWindow]) -> list[Score]:
        """Scores of outputs (N, T, D) in the units of the data."""
        targets = np.stack([one.future for one in windows])
        deviation = self.scale.errors
        return [
            squared_error(outputs, targets, deviation),
            absolute_error(outputs, targets, deviation),
            average_displacement(outputs, targets),
            final_displacement(outputs, targets),
        ]

    def baselines(self, windows: Sequence[SeriesWindow]) -> dict[str, list[Score]]:
        """Scores of forecasts that need no training."""
        columns = len(self.scale.errors)
        observed = np.stack([one.observed[:, :columns] for one in windows])
        baselines = {"last value": predict_last_value, "straight line": extrapolate_linearly}
        return {
            name: self.scores(forecast(observed, self.config.predict), windows)
            for name, forecast in baselines.items()
        }
