"""Tests the claim: a Transformer trains on all positions in parallel.

A recurrent network processes one position after another.
"""

import statistics
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from torch.optim import Adam
from torch.utils._python_dispatch import TorchDispatchMode

from seqloom.core.batch import Batch
from seqloom.core.device import best_device
from seqloom.lab.claim import Trial, declare_claim
from seqloom.lab.models.random_models import (
    random_batch,
    random_model,
    recurrent_config,
    transformer_config,
)
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.models.seq2seq import Model
from seqloom.viz.chart import Chart, LineChart, Series

RECURRENT, TRANSFORMER = "recurrent", "Transformer"
LENGTHS = {f"{length} tokens": length for length in (8, 32, 128, 512)}
SHORTEST, *_, LONGEST = LENGTHS
LAYERS = 2
"""Number of layers of each side of the Transformer. The recurrent network has one on each side."""
WARMUP = 2
"""Number of training steps before the measured ones."""


@dataclass(frozen=True)
class ParallelSettings:
    """Sizes of the experiment.

    The widths of the Transformer and of the recurrent network are chosen so that both have nearly
    the same number of parameters.

    tokens:  number of target tokens per batch, the same for every length
    repeats: number of training steps to measure. The result is the median of their times.
    """

    transformer_width: int
    recurrent_width: int
    tokens: int
    repeats: int


class _OperationCounter(TorchDispatchMode):
    """Counts the operations that torch dispatches."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operations += 1
        return func(*args, **(kwargs or {}))


class TrainedModel:
    """A model and the optimiser that trains it."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.optimizer = Adam(model.parameters())

    def forward_backward(self, batch: Batch) -> None:
        logits = self.model(batch).logits()
        cross_entropy(logits.flatten(0, 1), batch.targets.values.flatten()).backward()

    def measure_step(self, batch: Batch) -> float:
        """Return the time of a training step in seconds: forward, backward and update."""
        _wait_for_gpu(batch)
        start = time.perf_counter()
        self.optimizer.zero_grad()
        self.forward_backward(batch)
        self.optimizer.step()
        _wait_for_gpu(batch)
        return time.perf_counter() - start


def _wait_for_gpu(batch: Batch) -> None:
    if batch.targets.values.is_cuda:
        torch.cuda.synchronize()


def build_models(settings: ParallelSettings, seed: int) -> dict[str, Model]:
    configs = {
        RECURRENT: recurrent_config(settings.recurrent_width, attention=True),
        TRANSFORMER: transformer_config(settings.transformer_width, LAYERS),
    }
    return {name: random_model(config, seed).train() for name, config in configs.items()}


def measure(trial: Trial[ParallelSettings]) -> Numbers:
    """Measure a recurrent network and a Transformer at one length.

    Counts the operations that torch dispatches, and measures the time of a training step. The two
    models take turns, so that a slow phase of the machine affects both.
    """
    settings, device, length = trial.settings, best_device(), LENGTHS[trial.condition]
    models = build_models(settings, trial.seed)
    numbers: dict[str, float] = {}
    for name, model in models.items():
        numbers[f"parameters, {name}"] = sum(each.numel() for each in model.parameters())
        # Count on the CPU, because cuDNN runs all steps of a recurrence in a single operation.
        with _OperationCounter() as counter:
            TrainedModel(model).forward_backward(random_batch(1, length, trial.seed))
        numbers[f"operations, {name}"] = float(counter.operations)
    rows = max(1, settings.tokens // length)
    batch = random_batch(rows, length, trial.seed).to(device)
    trained = {name: TrainedModel(model.to(device)) for name, model in models.items()}
    times: dict[str, list[float]] = {name: [] for name in trained}
    for repetition in range(-WARMUP, settings.repeats):
        trial.progress("measuring", max(0, repetition) / settings.repeats)
        for name, each in trained.items():
            seconds = each.measure_step(batch)
            if repetition >= 0:
                times[name].append(seconds)
    for name, values in times.items():
        numbers[f"milliseconds, {name}"] = 1e3 * statistics.median(values)
    ratios = [first / second for first, second in zip(*times.values(), strict=True)]
    return {**numbers, "time ratio": statistics.median(ratios)}


def judge(results: Results) -> Verdict:
    def growth(name: str) -> list[float]:
        """Return, for each seed, how a measured value grows with the sequence length.

        The result is the value at the longest length, divided by that at the shortest length.
        """
        return results.ratio((LONGEST, name), (SHORTEST, name))

    length_ratio = LENGTHS[LONGEST] / LENGTHS[SHORTEST]
    grow = f"from {LENGTHS[SHORTEST]} to {LONGEST}, sequential operations grow by a factor of"
    return conclude(
        Effect(f"recurrent: {grow}", growth(f"operations, {RECURRENT}"), above=length_ratio / 2),
        Effect(f"Transformer: {grow}", growth(f"operations, {TRANSFORMER}"), below=1.1),
        Effect(
            f"from {LENGTHS[SHORTEST]} to {LONGEST}, the ratio of the time of a training step, "
            "recurrent to Transformer, grows by a factor of",
            growth("time ratio"),
            above=1.0,
        ),
        Effect(
            f"at {LONGEST}, a training step of the recurrent network takes, in multiples of the "
            "Transformer's,",
            results.over_seeds(LONGEST, "time ratio"),
            above=1.0,
        ),
    )


def plot(results: Results) -> list[Chart]:
    lengths = list(LENGTHS.values())

    def lines(quantity: str, label: str) -> LineChart:
        series = [
            Series(
                name,
                lengths,
                [results.over_seeds(condition, f"{quantity}, {name}") for condition in LENGTHS],
            )
            for name in (RECURRENT, TRANSFORMER)
        ]
        return LineChart(
            "length of source and target", label, series, logarithmic_x=True, logarithmic_y=True
        )

    return [
        lines("operations", "sequential operations"),
        lines("milliseconds", "milliseconds per training step"),
    ]


CLAIM = declare_claim(
    "parallel",
    conditions=tuple(LENGTHS),
    sizes=ParallelSettings,
    measure=measure,
    judge=judge,
    plot=plot,
    is_timed=True,
)
