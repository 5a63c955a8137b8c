"""What attention costs grows with the square of the length; a recurrent layer's cost with it."""

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
from seqloom.nn.attention import DotScore, weigh
from seqloom.nn.recurrent import RecurrentLayer
from seqloom.viz.chart import Chart, LineChart, Series

ATTENTION, CHAIN = "attention", "recurrent layer"
HEADS = TRANSFORMER_ATTENTION.heads


@dataclass(frozen=True)
class Settings:
    width: int
    lengths: tuple[int, ...]
    repeats: int


def measure(trial: Trial[Settings]) -> Numbers:
    """Multiplications and seconds for sequences of each length, and the power they grow with."""
    settings = trial.settings
    torch.manual_seed(trial.seed)
    layer = RecurrentLayer("gru", settings.width, settings.width).eval()
    operations, seconds = [], []
    with torch.no_grad():
        for length in settings.lengths:
            states = torch.randn(1, length, settings.width)  # (B, S, D)
            with FlopCounterMode(display=False) as counter:
                _read(trial.condition, states, layer)
            operations.append(float(counter.get_total_flops()))
            seconds.append(_fastest(trial.condition, states, layer, settings.repeats))
    first, last = settings.lengths[0], settings.lengths[-1]
    return {
        "power": _power(operations, first, last),
        "power of time": _power(seconds, first, last),
        "operations at the shortest": operations[0],
        "operations at the longest": operations[-1],
        **{f"operations {place}": value for place, value in enumerate(operations)},
        **{f"seconds {place}": value for place, value in enumerate(seconds)},
        **{f"length {place}": float(value) for place, value in enumerate(settings.lengths)},
    }


def _read(condition: str, states: Tensor, layer: RecurrentLayer) -> Tensor:
    """One layer that lets every position know of others: (1, S, D) -> (1, S, D)"""
    _, length, width = states.shape
    if condition == CHAIN:
        found: Tensor = layer(states, states.new_zeros(1, width))[0]
        return found
    heads = states.view(1, length, HEADS, width // HEADS).transpose(1, 2)  # (B, H, S, D/H)
    scores = DotScore("sqrt", width // HEADS)(heads, heads)  # (B, H, S, S)
    weights = weigh(scores, torch.ones(length, dtype=torch.bool), "softmax")
    return (weights @ heads).transpose(1, 2).flatten(2)


def _fastest(condition: str, states: Tensor, layer: RecurrentLayer, repeats: int) -> float:
    """The shortest of several times: what disturbs only ever adds."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        _read(condition, states, layer)
        times.append(time.perf_counter() - began)
    return min(times)


def _power(values: list[float], first: int, last: int) -> float:
    """p of values ~ length^p, from the first and the last of them."""
    return math.log(values[-1] / values[0]) / math.log(last / first)


def judge(results: Results) -> Verdict:
    return conclude(
        Effect(
            "operations of attention grow with the length to the power of",
            results.over_seeds(ATTENTION, "power"),
            above=1.9,
        ),
        Effect(
            "those of a recurrent layer with the power of",
            results.over_seeds(CHAIN, "power"),
            below=1.1,
        ),
    )


def plot(results: Results) -> list[Chart]:
    count = sum(name.startswith("length ") for name in results.measurements[0].numbers)
    places = range(count)
    lengths = [results.mean(ATTENTION, f"length {place}") for place in places]

    def lines(what: str, label: str) -> LineChart:
        names = [f"{what} {place}" for place in places]
        series = [Series(one, lengths, results.curve(one, names)) for one in (ATTENTION, CHAIN)]
        return LineChart("length", label, series, logarithmic_x=True, logarithmic_y=True)

    return [lines("operations", "floating point operations"), lines("seconds", "seconds")]


CLAIM = Claim(
    name="cost",
    sentence="Attention compares every position with every other, so its cost grows with the "
    "square of the length, where a recurrent layer's grows with the length itself.",
    source="L2, Calculating the attention weights (downside: quadratic cost)",
    setup="A sequence of random vectors attends to itself, with the scores and weights of seqloom "
    "and without projections, or passes through a GRU layer of the same width. torch counts the "
    "floating point operations at each length; the time is measured beside them and not judged, "
    "for on a shared machine it is noise.",
    confirms="Operations of attention grow with a power of the length above 1.9, those of the "
    "recurrent layer with one below 1.1.",
    refutes="Attention's power is below 1.9, or the recurrent layer's above 1.1.",
    conditions=(ATTENTION, CHAIN),
    sizes={
        "tiny": Settings(width=16, lengths=(8, 16), repeats=1),
        "small": Settings(width=128, lengths=(64, 128, 256, 512, 1024, 2048), repeats=3),
        "full": Settings(width=512, lengths=(64, 128, 256, 512, 1024, 2048, 4096), repeats=10),
    },
    measure=measure,
    judge=judge,
    plot=plot,
    columns=(
        Column("power", "power of the length, operations", ".2f"),
        Column("power of time", "power of the length, time", ".2f"),
        Column("operations at the shortest", "operations, shortest", ".3g"),
        Column("operations at the longest", "operations, longest", ".3g"),
    ),
)
