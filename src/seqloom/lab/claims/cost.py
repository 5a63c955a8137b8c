"""The cost of attention grows with the square of the length.

The cost of a recurrent layer grows linearly with the length.
"""

import math
import time
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from seqloom.config.schema.attention import TRANSFORMER_ATTENTION
from seqloom.lab.claim import Claim, Column, Trial
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.nn.attention import DotScore, attention_weights
from seqloom.nn.recurrent import RecurrentLayer
from seqloom.viz.chart import Chart, LineChart, Series

ATTENTION, RECURRENT = "attention", "recurrent layer"
HEADS = TRANSFORMER_ATTENTION.heads


@dataclass(frozen=True)
class CostSettings:
    width: int
    lengths: tuple[int, ...]
    repeats: int


def measure(trial: Trial[CostSettings]) -> Numbers:
    """Measure the number of operations and the time at each length.

    Also returns the exponents p such that operations and time grow with length^p.
    """
    settings = trial.settings
    torch.manual_seed(trial.seed)
    layer = RecurrentLayer("gru", settings.width, settings.width).eval()
    operations, seconds = [], []
    with torch.no_grad():
        for length in settings.lengths:
            states = torch.randn(1, length, settings.width)  # (B, S, D)
            with FlopCounterMode(display=False) as counter:
                _run_layer(trial.condition, states, layer)
            operations.append(float(counter.get_total_flops()))
            seconds.append(_shortest_time(trial.condition, states, layer, settings.repeats))
    first, last = settings.lengths[0], settings.lengths[-1]
    return {
        "exponent": _exponent(operations, first, last),
        "exponent of time": _exponent(seconds, first, last),
        "operations at the shortest": operations[0],
        "operations at the longest": operations[-1],
        **{f"operations {index}": value for index, value in enumerate(operations)},
        **{f"seconds {index}": value for index, value in enumerate(seconds)},
        **{f"length {index}": float(value) for index, value in enumerate(settings.lengths)},
    }


def _run_layer(condition: str, states: Tensor, layer: RecurrentLayer) -> Tensor:
    """Run self-attention or the recurrent layer: (1, S, D) -> (1, S, D)"""
    _, length, width = states.shape
    if condition == RECURRENT:
        outputs: Tensor = layer(states, states.new_zeros(1, width))[0]
        return outputs
    heads = states.view(1, length, HEADS, width // HEADS).transpose(1, 2)  # (B, H, S, D/H)
    scores = DotScore("sqrt", width // HEADS)(heads, heads)  # (B, H, S, S)
    weights = attention_weights(scores, torch.ones(length, dtype=torch.bool), "softmax")
    return (weights @ heads).transpose(1, 2).flatten(2)


def _shortest_time(condition: str, states: Tensor, layer: RecurrentLayer, repeats: int) -> float:
    """Run the layer several times and return the shortest time in seconds.

    Other load on the machine can only lengthen a measurement, so the shortest one is the best.
    """
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        _run_layer(condition, states, layer)
        times.append(time.perf_counter() - start)
    return min(times)


def _exponent(values: list[float], first: int, last: int) -> float:
    """Return p such that the values grow with length^p.

    p is computed from the values at the lengths `first` and `last`.
    """
    return math.log(values[-1] / values[0]) / math.log(last / first)


def judge(results: Results) -> Verdict:
    return conclude(
        Effect(
            "the operations of attention grow with the length to the power of",
            results.over_seeds(ATTENTION, "exponent"),
            above=1.9,
        ),
        Effect(
            "the operations of a recurrent layer grow with the length to the power of",
            results.over_seeds(RECURRENT, "exponent"),
            below=1.1,
        ),
    )


def plot(results: Results) -> list[Chart]:
    count = sum(name.startswith("length ") for name in results.measurements[0].numbers)
    indices = range(count)
    lengths = [results.mean(ATTENTION, f"length {index}") for index in indices]

    def lines(quantity: str, label: str) -> LineChart:
        names = [f"{quantity} {index}" for index in indices]
        series = [
            Series(condition, lengths, results.curve(condition, names))
            for condition in (ATTENTION, RECURRENT)
        ]
        return LineChart("length", label, series, logarithmic_x=True, logarithmic_y=True)

    return [lines("operations", "floating point operations"), lines("seconds", "seconds")]


CLAIM = Claim(
    name="cost",
    sentence="Attention compares every position with every other, so its cost grows with the "
    "square of the length, while the cost of a recurrent layer grows linearly.",
    source="L2, Calculating the attention weights (downside: quadratic cost)",
    setup="A sequence of random vectors attends to itself, with the scores and weights of seqloom "
    "and without projections, or passes through a GRU layer of the same width. torch counts the "
    "floating point operations at each length. The time is measured as well but not judged, "
    "because it is noisy on a shared machine.",
    confirms="The operations of attention grow with an exponent above 1.9, those of the recurrent "
    "layer with one below 1.1.",
    refutes="The exponent of attention is below 1.9, or that of the recurrent layer above 1.1.",
    conditions=(ATTENTION, RECURRENT),
    sizes={
        "tiny": CostSettings(width=16, lengths=(8, 16), repeats=1),
        "small": CostSettings(width=128, lengths=(64, 128, 256, 512, 1024, 2048), repeats=3),
        "full": CostSettings(width=512, lengths=(64, 128, 256, 512, 1024, 2048, 4096), repeats=10),
    },
    measure=measure,
    judge=judge,
    plot=plot,
    columns=(
        Column("exponent", "exponent of the length, operations", ".2f"),
        Column("exponent of time", "exponent of the length, time", ".2f"),
        Column("operations at the shortest", "operations, shortest", ".3g"),
        Column("operations at the longest", "operations, longest", ".3g"),
    ),
)
