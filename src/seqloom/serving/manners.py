"""How errands of one run are carried out together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqloom.config.schema.decoding import (
    BeamConfig,
    DecodingConfig,
    ExhaustiveConfig,
    GreedyConfig,
    MinimumBayesRiskConfig,
    SampleConfig,
)
from seqloom.data.series import Numbers
from seqloom.runs.batching import batch_token_budget, hypotheses_per_input
from seqloom.runs.engine.select import TORCH
from seqloom.runs.forecaster import Forecaster
from seqloom.runs.options import PredictionOptions
from seqloom.runs.prediction import Prediction
from seqloom.runs.run import Run
from seqloom.serving.batcher import MOST, Errand, Waiting
from seqloom.tasks.task import ModelInput


@dataclass(frozen=True)
class Item:
    """One input of a search, and its number in its asker's list: a sample depends on it."""

    prepared: ModelInput
    number: int = 0


@dataclass(frozen=True)
class Searching:
    """Outputs are searched for; what is asked for in the same way is searched for together.

    streamed: somebody hears every token, which torch alone tells
    """

    run: Run
    decoding: DecodingConfig
    wish: PredictionOptions
    streamed: bool = False

    def room(self) -> int:
        return batch_token_budget(self.run.predictor.device) // max(1, _followed(self.decoding))

    def do(self, errands: Sequence[Errand]) -> list[list[Prediction]]:
        run = self.run
        choice = TORCH
        if not self.streamed:
            choice = run.engines.choose(run.engine, self.decoding, self.wish, compile_now=False)
        items: list[Item] = [errand.work for errand in errands]
        # Where steps are recorded or compiled, that is worth more than to let somebody go.
        replayed = run.predictor.device.type != "cpu" or (choice.compiled and len(items) == 1)
        attended = self.streamed or not replayed
        return choice.apply(run.predictor).predict_inputs(
            [item.prepared for item in items],
            self.decoding,
            self.wish,
            [item.number for item in items],
            callback=Waiting(errands) if attended else None,
        )


def _followed(decoding: DecodingConfig) -> int:
    match decoding:
        case MinimumBayesRiskConfig(samples=samples, beam=beam):
            return samples + beam
        case GreedyConfig() | SampleConfig() | BeamConfig() | ExhaustiveConfig():
            return hypotheses_per_input(decoding)


@dataclass(frozen=True)
class Forecasting:
    """Windows of one run are rolled out together: they are all of one size."""

    forecaster: Forecaster

    def room(self) -> int:
        return MOST * self.forecaster.task.config.observe

    def do(self, errands: Sequence[Errand]) -> list[Numbers]:
        found: Any = self.forecaster.forecast([errand.work for errand in errands])
        return [np.asarray(one) for one in found]
