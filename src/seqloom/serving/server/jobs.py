"""Job types of the batcher: searching for outputs, and forecasting numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqloom.config.schema.decoding import DecodingConfig
from seqloom.data.readers.csv_cells import Numbers
from seqloom.inference.batching import batch_token_budget
from seqloom.inference.engine.select import TORCH
from seqloom.inference.forecaster import Forecaster
from seqloom.inference.options import PredictionOptions
from seqloom.inference.prediction import Prediction
from seqloom.inference.run import Run
from seqloom.serving.server.batcher import MAX_JOBS, Job, JobStreamingCallback
from seqloom.tasks.task import ModelInput


@dataclass(frozen=True)
class SearchInput:
    """The input of a search job.

    prepared: the model input
    index:    a number from which sampling derives the random seed of this input
    """

    prepared: ModelInput
    index: int = 0


@dataclass(frozen=True)
class SearchJobType:
    """Type of the jobs that search for outputs of one run.

    Jobs with the same run, decoding configuration and options can share a batch.

    streamed:   True if each token is sent to the client as soon as it is generated. The search
                then uses the engine torch, because the other engines cannot stream.
    torch_only: True if the search must use the engine torch
    """

    run: Run
    decoding: DecodingConfig
    options: PredictionOptions
    streamed: bool = False
    torch_only: bool = False

    def token_budget(self) -> int:
        device = self.run.predictor.device
        return batch_token_budget(device) // max(1, self.decoding.hypotheses_per_input)

    def process(self, jobs: Sequence[Job]) -> list[list[Prediction]]:
        run = self.run
        choice = TORCH
        if not (self.streamed or self.torch_only):
            choice = run.engines.choose(run.engine, self.decoding, self.options, compile_now=False)
        inputs: list[SearchInput] = [job.payload for job in jobs]
        # A search with captured or compiled steps cannot be cancelled when its client disconnects.
        # Such steps are used anyway, because they save more time than cancelling would save.
        fixed_steps = run.predictor.device.type != "cpu" or (choice.compiled and len(inputs) == 1)
        callback = JobStreamingCallback(jobs) if self.streamed or not fixed_steps else None

        def on_prediction(index: int, predictions: list[Prediction]) -> None:
            # The last token of a stream may be reported after the prediction.
            if jobs[index].on_token is None:
                jobs[index].set_result(predictions)

        return choice.apply(run.predictor).predict_inputs(
            [item.prepared for item in inputs],
            self.decoding,
            self.options,
            [item.index for item in inputs],
            callback=callback,
            on_prediction=on_prediction,
        )

    def count_output_tokens(self, results: Sequence[list[Prediction]]) -> int:
        return sum(len(prediction.tokens) for outputs in results for prediction in outputs)


@dataclass(frozen=True)
class ForecastJobType:
    """Job type that forecasts numbers with a run.

    The input of a job is a window: the observed rows of a time series. All windows have the same
    number of rows.
    """

    forecaster: Forecaster

    def token_budget(self) -> int:
        return MAX_JOBS * self.forecaster.task.config.observe

    def process(self, jobs: Sequence[Job]) -> list[Numbers]:
        forecasts: Any = self.forecaster.forecast([job.payload for job in jobs])
        return [np.asarray(forecast) for forecast in forecasts]

    def count_output_tokens(self, results: Sequence[Numbers]) -> int:
        return 0
