"""A Transformer learns all positions of a sentence at once; a recurrent network one after another."""

import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from seqloom.config.schema.model import ModelConfig
from seqloom.core.batch import Batch
from seqloom.lab.claim import Claim, Column, Trial
from seqloom.lab.results import Numbers, Results
from seqloom.lab.untrained import random_batch, random_model, recurrent, transformer
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.models.seq2seq import Model
from seqloom.runs.device import best_device
from seqloom.viz.chart import Chart, LineChart, Series

CHAIN, TRANSFORMER = "recurrent", "Transformer"
LENGTHS = (8, 16, 32, 64, 128)
COUNTS = [f"operations at {length}" for length in LENGTHS]
TIMES = [f"microseconds a token at {length}" for length in LENGTHS]


@dataclass(frozen=True)
class Settings:
    width: int
    tokens: int
    """In a batch, whatever their length."""
    repeats: int


class _Count(TorchDispatchMode):
    """How many operations were asked for, one after another."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operations += 1
        return func(*args, **(kwargs or {}))


def configure(trial: Trial[Settings]) -> ModelConfig:
    if trial.condition == TRANSFORMER:
        return transformer(trial.settings.width, layers=2)
    return recurrent(trial.settings.width, attention=True)


def measure(trial: Trial[Settings]) -> Numbers:
    """Operations and time of a forward and backward pass over batches of each length."""
    settings, device = trial.settings, best_device()
    model = random_model(configure(trial), trial.seed).train()
    numbers: dict[str, float] = {}
    # Counted on the CPU: what a GPU hides in one call, step after step, is written out there.
    for length, count in zip(LENGTHS, COUNTS, strict=True):
        counter = _Count()
        with counter:
            _learn(model, random_batch(1, length, trial.seed))
        numbers[count] = float(counter.operations)
    model.to(device)
    for length, speed in zip(LENGTHS, TIMES, strict=True):
        rows = max(1, settings.tokens // length)
        batch = random_batch(rows, length, trial.seed).to(device)
        times = [_seconds(model, batch) for _ in range(settings.repeats)]
        numbers[speed] = 1e6 * min(times) / (rows * length)
    numbers["growth"] = numbers[COUNTS[-1]] / numbers[COUNTS[0]]
    return numbers


def _learn(model: Model, batch: Batch) -> Tensor:
    loss = torch.nn.functional.cross_entropy(
        model(batch).logits().flatten(0, 1), batch.targets.values.flatten()
    )
    loss.backward()
    return loss


def _seconds(model: Model, batch: Batch) -> float:
    began = time.perf_counter()
    _learn(model, batch).item()  # asking for the number waits until it is there
    return time.perf_counter() - began


def judge(results: Results) -> Verdict:
    longer = LENGTHS[-1] / LENGTHS[0]
    way = f"from {LENGTHS[0]} to {LENGTHS[-1]} tokens, operations in turn grow by a factor of"
    return conclude(
        Effect(f"recurrent: {way}", results.over_seeds(CHAIN, "growth"), above=longer / 2),
        Effect(f"Transformer: {way}", results.over_seeds(TRANSFORMER, "growth"), below=1.1),
    )


def plot(results: Results) -> list[Chart]:
    def lines(names: list[str], label: str) -> LineChart:
        series = [Series(one, LENGTHS, results.curve(one, names)) for one in (CHAIN, TRANSFORMER)]
        return LineChart(
            "length of source and target", label, series, logarithmic_x=True, logarithmic_y=True
        )

    return [
        lines(COUNTS, "operations that follow one another"),
        lines(TIMES, "microseconds for a target token"),
    ]


CLAIM = Claim(
    name="parallel",
    sentence="A recurrent network has to go through a sentence word by word; a Transformer learns "
    "from all its words in parallel, in as many operations for a long sentence as for a short one.",
    source="L2, Attention is all you need; L0 §1.2 (sequential processing)",
    setup="A GRU with attention and a Transformer with two layers learn from batches of the same "
    "number of tokens in sentences of 8 to 128. Counted: operations that a forward and a backward "
    "pass ask for, one after another. The time for a target token is measured beside them and not "
    "judged: it depends on how much of a machine one operation can fill.",
    confirms="From 8 to 128 tokens the recurrent network's operations grow at least half as much "
    "as the length; the Transformer's stay within a tenth.",
    refutes="The recurrent network's operations do not grow, or the Transformer's do.",
    conditions=(CHAIN, TRANSFORMER),
    sizes={
        "tiny": Settings(width=16, tokens=256, repeats=1),
        "small": Settings(width=64, tokens=1_024, repeats=3),
        "full": Settings(width=512, tokens=16_384, repeats=10),
    },
    measure=measure,
    judge=judge,
    plot=plot,
    columns=(
        Column(COUNTS[0], f"operations, {LENGTHS[0]} tokens", ",.0f"),
        Column(COUNTS[-1], f"operations, {LENGTHS[-1]} tokens", ",.0f"),
        Column("growth", "growth", ".3g"),
        Column(TIMES[0], f"µs a token, {LENGTHS[0]} tokens", ".3g"),
        Column(TIMES[-1], f"µs a token, {LENGTHS[-1]} tokens", ".3g"),
    ),
)
