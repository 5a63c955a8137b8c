"""Forecasting: predicts the next rows of a real-valued sequence. Each time step is one row."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
from torch import Tensor

from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.task import ForecastConfig
from seqloom.core.batch import Batch
from seqloom.core.signature import Signature, Vectors
from seqloom.data.corpus.dataset import ProgressCallback, ReadingProgress, ignore_progress
from seqloom.data.example import Split
from seqloom.data.modalities.series import (
    Scale,
    SeriesDataset,
    SeriesWindow,
    from_form,
    read_windows,
)
from seqloom.data.readers.csv_cells import Numbers
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
    """Predicts the next rows of a real-valued sequence. The loss is the squared error.

    free_running: what the decoder reads when the dev loss is computed. True: its own predictions.
                  False: the true rows, as in training with teacher forcing
    """

    def __init__(self, config: ForecastConfig, scale: Scale, free_running: bool) -> None:
        self.config = config
        self._free_running = free_running
        self.scale = scale
        columns = len(scale.errors)
        context = len(scale.mean) - columns
        self.signature = Signature(
            Vectors(columns + context), Vectors(columns), shared=False, context=context
        )

    @classmethod
    def learn(cls, config: RunConfig, progress: ProgressCallback = ignore_progress) -> Self:
        """Build the task of a new run.

        The scale, which normalises the values, is computed from the training split.
        """
        task = config.task
        assert isinstance(task, ForecastConfig)
        windows = read_windows(config.data, task, "train")
        scale = Scale.learn(
            windows, task.representation, task.random_rotation, task.context_representation
        )
        return cls(task, scale, config.is_free_running)

    @classmethod
    def load(cls, config: RunConfig, folder: Path) -> Self:
        assert isinstance(config.task, ForecastConfig)
        return cls(config.task, Scale.load(folder), config.is_free_running)

    def save(self, folder: Path) -> None:
        self.scale.save(folder)

    def corpus(self, config: RunConfig, split: Split, progress: ProgressCallback) -> SeriesDataset:
        windows = read_windows(config.data, self.config, split)
        progress(ReadingProgress(len(windows), len(windows)))
        is_rotated = self.config.random_rotation and split == "train"
        return self.windows(windows, split, config.training.seed if is_rotated else None)

    def windows(
        self, windows: list[SeriesWindow], split: str, rotation_seed: int | None = None
    ) -> SeriesDataset:
        """Convert windows to a dataset of normalised values.

        rotation_seed: if given, the dataset rotates and mirrors each window at random, with this
                       seed. Default: None, no rotation and no mirroring
        """
        return SeriesDataset.of(
            windows,
            self.config.representation,
            self.scale,
            split,
            rotation_seed,
            self.config.context_representation,
        )

    def loss(self, model: Model, batch: Batch, objective: Objective = LIKELIHOOD) -> Tensor:
        """Return the squared error, averaged over the columns and summed over all target rows."""
        share = objective.target_share
        if share is None:
            share = 0.0 if self._free_running else 1.0
        # Teacher forcing computes all positions at once. Otherwise an input depends on outputs.
        outputs = model(batch).logits() if share >= 1 else self.free_running(model, batch, share)
        return ((outputs - batch.targets.values) ** 2).mean(-1).sum()

    def free_running(self, model: Model, batch: Batch, target_share: float = 0.0) -> Tensor:
        """Return scaled predictions (B, T, D). The decoder reads its own predictions.

        At each step, the decoder reads the row that it predicted at the previous step. It also
        reads the context columns (`Signature.context`) of the row that it predicts at this step. Context
        columns are not predicted: they are known in advance.

        target_share: probability that the decoder reads the true row instead of its prediction,
                      drawn at each position. Default: 0, which means that it reads no true rows
        """
        columns = batch.targets.values.shape[-1]
        inputs = batch.inputs.values
        memory = model.encode(batch.source, batch.size)
        first, context = inputs[:, 0, :columns], inputs[..., columns:]
        targets = batch.targets.values
        return roll_out(model.decoder, memory, first, context, targets, target_share)

    def unscaled(self, outputs: Numbers, windows: Sequence[SeriesWindow]) -> Numbers:
        """Convert scaled model outputs (N, T, D) to the units of the data."""
        columns = outputs.shape[-1]
        last = np.stack([window.observed[-1:, :columns] for window in windows])
        scaled = outputs * self.scale.deviation[:columns] + self.scale.mean[:columns]
        return from_form(scaled, last, self.config.representation)

    def scores(self, outputs: Numbers, windows: Sequence[SeriesWindow]) -> list[Score]:
        """Return the scores of outputs (N, T, D), which are in the units of the data."""
        targets = np.stack([window.future for window in windows])
        deviation = self.scale.errors
        return [
            squared_error(outputs, targets, deviation),
            absolute_error(outputs, targets, deviation),
            average_displacement(outputs, targets),
            final_displacement(outputs, targets),
        ]

    def baselines(self, windows: Sequence[SeriesWindow]) -> dict[str, list[Score]]:
        """Return the scores of two simple forecasts that need no training.

        The keys of the result are the names of these forecasts: "last value" and "straight line".
        """
        columns = len(self.scale.errors)
        observed = np.stack([window.observed[:, :columns] for window in windows])
        baselines = {"last value": predict_last_value, "straight line": extrapolate_linearly}
        return {
            name: self.scores(forecast(observed, self.config.predict), windows)
            for name, forecast in baselines.items()
        }
