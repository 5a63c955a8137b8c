"""Forecast: real-valued vectors to the vectors that follow them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from torch import Tensor

from seqloom.config.data import DataConfig
from seqloom.config.run import RunConfig
from seqloom.config.task import ForecastConfig
from seqloom.core.sequences import Batch
from seqloom.core.signature import Signature, Vectors
from seqloom.data.example import Split
from seqloom.data.scale import Scale, unformed
from seqloom.data.series import Numbers, Window, read_windows, widths
from seqloom.data.windows import Windows
from seqloom.decoding.rollout import roll_out
from seqloom.metrics.score import Score
from seqloom.metrics.trajectory import (
    absolute_error,
    average_displacement,
    final_displacement,
    squared_error,
    stay,
    straight_on,
)
from seqloom.models.seq2seq import Model
from seqloom.tasks.objective import LIKELIHOOD, Objective


class Forecast:
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
        """The scale is the training split's, whatever is forecast later."""
        windows = read_windows(data, config, "train")
        widths(data)  # all series alike, or an error
        return cls(config, Scale.learn(windows, config.form, config.turn))

    @classmethod
    def load(cls, config: ForecastConfig, folder: Path) -> Self:
        return cls(config, Scale.load(folder))

    def save(self, folder: Path) -> None:
        self.scale.save(folder)

    def corpus(self, config: RunConfig, split: Split, progress: Callable[[int], None]) -> Windows:
        windows = read_windows(config.data, self.config, split)
        progress(len(windows))
        turns = config.training.seed if self.config.turn and split == "train" else None
        return self.windows(windows, split, turns)

    def windows(self, windows: list[Window], split: str, turns: int | None = None) -> Windows:
        """As the network sees them."""
        return Windows.of(windows, self.config.form, self.scale, split, turns)

    def loss(self, model: Model, batch: Batch, objective: Objective = LIKELIHOOD) -> Tensor:
        """Σ over positions of the mean squared error of a row."""
        assert objective == LIKELIHOOD
        outputs = self.rolled(model, batch) if self.config.rollout else self._taught(model, batch)
        return ((outputs - batch.targets.values) ** 2).mean(-1).sum()

    def _taught(self, model: Model, batch: Batch) -> Tensor:
        """(B, T, D), with the truth fed in"""
        outputs: Tensor = model(batch).logits()
        return outputs

    def rolled(self, model: Model, batch: Batch) -> Tensor:
        """(B, T, D) in the network's own numbers, with its own outputs fed in: of the future
        nothing is used but the context."""
        columns = batch.targets.values.shape[-1]
        inputs = batch.inputs.values
        memory = model.encode(batch.source, batch.size)
        return roll_out(model.decoder, memory, inputs[:, 0, :columns], inputs[..., columns:])

    def presented(self, outputs: Numbers, windows: Sequence[Window]) -> Numbers:
        """(N, T, D) as they come out of the network -> in the units of the data"""
        columns = outputs.shape[-1]
        last = np.stack([one.observed[-1:, :columns] for one in windows])
        scaled = outputs * self.scale.deviation[:columns] + self.scale.mean[:columns]
        return unformed(scaled, last, self.config.form)

    def scores(self, outputs: Numbers, windows: Sequence[Window]) -> list[Score]:
        """Outputs (N, T, D) in the units of the data."""
        truth = np.stack([one.future for one in windows])
        deviation = self.scale.errors
        return [
            squared_error(outputs, truth, deviation),
            absolute_error(outputs, truth, deviation),
            average_displacement(outputs, truth),
            final_displacement(outputs, truth),
        ]

    def baselines(self, windows: Sequence[Window]) -> dict[str, list[Score]]:
        """What forecasts without any learning reach."""
        columns = len(self.scale.errors)
        observed = np.stack([one.observed[:, :columns] for one in windows])
        guesses = {"last value": stay, "straight line": straight_on}
        return {
            name: self.scores(guess(observed, self.config.predict), windows)
            for name, guess in guesses.items()
        }
