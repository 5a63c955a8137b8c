"""A Transformer trains on all positions in parallel.

A recurrent network processes one position after another.
"""

import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from seqloom.config.schema.model import ModelConfig
from seqloom.core.batch import Batch
from seqloom.lab.claim import Claim, Column, Trial
from seqloom.lab.models.random_models import (
    random_batch,
    random_model,
    recurrent_config,
    transformer_config,
)
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.models.seq2seq import Model
from seqloom.runs.device import best_device
from seqloom.viz.chart import Chart, LineChart, Series

RECURRENT, TRANSFORMER = "recurrent", "Transformer"
LENGTHS = (8, 16, 32, 64, 128)
OPERATIONS = [f"operations at {length}" for length in LENGTHS]
TIMES = [f"microseconds per token at {length}" for length in LENGTHS]


@dataclass(frozen=True)
class ParallelSettings:
    """Sizes of the experiment.

    tokens:  number of target tokens per batch, the same for every length
    repeats: number of time measurements; the shortest time counts
    """

    width: int
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


def configure(trial: Trial[ParallelSettings]) -> ModelConfig:
    if trial.condition == TRANSFORMER:
        return transformer_config(trial.settings.width, layers=2)
    return recurrent_config(trial.settings.width, attention=True)


def measure(trial: Trial[ParallelSettings]) -> Numbers:
    """Measure a forward and backward pass at each length: number of operations, and time."""
    settings, device = trial.settings, best_device()
    model = random_model(configure(trial), trial.seed).train()
    numbers: dict[str, float] = {}
    # Count on the CPU, because cuDNN runs all steps of a recurrence in a single operation.
    for length, name in zip(LENGTHS, OPERATIONS, strict=True):
        counter = _OperationCounter()
        with counter:
            _forward_backward(model, random_batch(1, length, trial.seed))
        numbers[name] = float(counter.operations)
    model.to(device)
    for length, name in zip(LENGTHS, TIMES, strict=True):
        rows = max(1, settings.tokens // length)
        batch = random_batch(rows, length, trial.seed).to(device)
        times = [_measure_seconds(model, batch) for _ in range(settings.repeats)]
        numbers[name] = 1e6 * min(times) / (rows * length)
    numbers["growth"] = numbers[OPERATIONS[-1]] / numbers[OPERATIONS[0]]
    return numbers


def _forward_backward(model: Model, batch: Batch) -> Tensor:
    loss = torch.nn.functional.cross_entropy(
        model(batch).logits().flatten(0, 1), batch.targets.values.flatten()
    )
    loss.backward()
    return loss


def _measure_seconds(model: Model, batch: Batch) -> float:
    start = time.perf_counter()
    _forward_backward(model, batch).item()  # item() waits for the GPU
    return time.perf_counter() - start


def judge(results: Results) -> Verdict:
    length_ratio = LENGTHS[-1] / LENGTHS[0]
    growth = f"from {LENGTHS[0]} to {LENGTHS[-1]} tokens, sequential operations grow by a factor of"
    return conclude(
        Effect(
            f"recurrent: {growth}",
            results.over_seeds(RECURRENT, "growth"),
            above=length_ratio / 2,
        ),
        Effect(f"Transformer: {growth}", results.over_seeds(TRANSFORMER, "growth"), below=1.1),
    )


def plot(results: Results) -> list[Chart]:
    def lines(names: list[str], label: str) -> LineChart:
        series = [
            Series(condition, LENGTHS, results.curve(condition, names))
            for condition in (RECURRENT, TRANSFORMER)
        ]
        return LineChart(
            "length of source and target", label, series, logarithmic_x=True, logarithmic_y=True
        )

    return [
        lines(OPERATIONS, "sequential operations"),
        lines(TIMES, "microseconds per target token"),
    ]


CLAIM = Claim(
    name="parallel",
    sentence="A recurrent network processes a sentence word by word; a Transformer trains on all "
    "its words in parallel, with as many sequential operations for a long sentence as for a short "
    "one.",
    source="L2, Attention is all you need; L0 §1.2 (sequential processing)",
    setup="A GRU with attention and a Transformer with two layers train on batches of the same "
    "number of tokens, in sentences of 8 to 128 tokens. Counted: the operations of a forward and a "
    "backward pass. The time per target token is measured as well but not judged, because it "
    "depends on how much of the machine one operation occupies.",
    confirms="From 8 to 128 tokens the operations of the recurrent network grow at least half as "
    "much as the length; those of the Transformer grow by less than a tenth.",
    refutes="The operations of the recurrent network do not grow, or those of the Transformer do.",
    conditions=(RECURRENT, TRANSFORMER),
    sizes={
        "tiny": ParallelSettings(width=16, tokens=256, repeats=1),
        "small": ParallelSettings(width=64, tokens=1_024, repeats=3),
        "full": ParallelSettings(width=512, tokens=16_384, repeats=10),
    },
    measure=measure,
    judge=judge,
    plot=plot,
    columns=(
        Column(OPERATIONS[0], f"operations, {LENGTHS[0]} tokens", ",.0f"),
        Column(OPERATIONS[-1], f"operations, {LENGTHS[-1]} tokens", ",.0f"),
        Column("growth", "growth", ".3g"),
        Column(TIMES[0], f"µs per token, {LENGTHS[0]} tokens", ".3g"),
        Column(TIMES[-1], f"µs per token, {LENGTHS[-1]} tokens", ".3g"),
    ),
)
