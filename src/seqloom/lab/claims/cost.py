"""Tests the claim: the cost of attention grows with the square of the sequence length.

The cost of a recurrent layer grows linearly with the length.
"""

import copy
import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from seqloom.config.schema.attention import TRANSFORMER_ATTENTION
from seqloom.core.device import best_device
from seqloom.lab.charts import condition_lines
from seqloom.lab.claim import Trial, declare_claim
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.nn.attention import DotScore, attention_weights
from seqloom.nn.recurrent import RecurrentLayer
from seqloom.viz.chart import Chart

ATTENTION, RECURRENT = "attention", "recurrent layer"
HEADS = TRANSFORMER_ATTENTION.heads
FITTED = 4
"""Number of lengths, counted from the longest, at which the exponents are fitted. At shorter
lengths the time to start an operation exceeds the time of its arithmetic."""
T_QUANTILE = 4.303
"""97.5% quantile of Student's t distribution with FITTED - 2 degrees of freedom."""


@dataclass(frozen=True)
class CostSettings:
    """Sizes of the experiment.

    lengths: sequence lengths to measure, in ascending order; at least 4 lengths (FITTED)
    repeats: number of time measurements at each length. The result is their median.
    """

    width: int
    lengths: tuple[int, ...]
    repeats: int


@dataclass(frozen=True)
class Fit:
    """The exponent of a power law: a value is proportional to length^exponent.

    low and high: ends of the 95% confidence interval of the exponent
    """

    exponent: float
    low: float
    high: float


def fit_exponent(lengths: Sequence[float], values: Sequence[float]) -> Fit:
    """Fit log value = exponent · log length + constant by least squares.

    Only the 4 longest lengths (FITTED) are used. The result includes the 95% confidence interval of
    the exponent, which is based on Student's t distribution.
    """
    x = [math.log(length) for length in lengths[-FITTED:]]
    y = [math.log(value) for value in values[-FITTED:]]
    x_mean, y_mean = statistics.fmean(x), statistics.fmean(y)
    spread = sum((each - x_mean) ** 2 for each in x)
    exponent = sum((a - x_mean) * (b - y_mean) for a, b in zip(x, y, strict=True)) / spread
    residuals = [b - y_mean - exponent * (a - x_mean) for a, b in zip(x, y, strict=True)]
    error = math.sqrt(sum(each**2 for each in residuals) / (len(x) - 2) / spread)
    return Fit(exponent, exponent - T_QUANTILE * error, exponent + T_QUANTILE * error)


def measure(trial: Trial[CostSettings]) -> Numbers:
    """Measure the operations, the time and, on a GPU, the peak memory at each length.

    Returns the measured values. For each of these quantities, also fits a power law,
    quantity ~ length^exponent, and returns the exponent with its confidence interval.
    """
    settings, device = trial.settings, best_device()
    torch.manual_seed(trial.seed)
    layer = RecurrentLayer("gru", settings.width, settings.width).eval()
    inputs = [torch.randn(1, length, settings.width) for length in settings.lengths]  # (1, S, D)
    with torch.no_grad():
        operations = [_count_operations(trial.condition, states, layer) for states in inputs]
        layer.to(device)
        inputs = [states.to(device) for states in inputs]
        seconds = _median_times(trial, inputs, layer)
        curves = {"operations": operations, "seconds": seconds}
        if device.type == "cuda":
            curves["bytes"] = [_peak_memory(trial.condition, states, layer) for states in inputs]
    numbers: dict[str, float] = {
        f"length {index}": float(length) for index, length in enumerate(settings.lengths)
    }
    for quantity, values in curves.items():
        numbers |= {f"{quantity} {index}": value for index, value in enumerate(values)}
        fit = fit_exponent(settings.lengths, values)
        numbers[f"exponent of {quantity}"] = fit.exponent
        numbers[f"exponent of {quantity}, low"] = fit.low
        numbers[f"exponent of {quantity}, high"] = fit.high
    return numbers


def _run_layer(condition: str, states: Tensor, layer: RecurrentLayer) -> Tensor:
    """Run self-attention or the recurrent layer: (1, S, D) -> (1, S, D)"""
    _, length, width = states.shape
    if condition == RECURRENT:
        outputs: Tensor = layer(states, states.new_zeros(1, width))[0]
        return outputs
    heads = states.view(1, length, HEADS, width // HEADS).transpose(1, 2)  # (B, H, S, D/H)
    scores = DotScore("sqrt", width // HEADS)(heads, heads)  # (B, H, S, S)
    weights = attention_weights(scores)
    return (weights @ heads).transpose(1, 2).flatten(2)


def _count_operations(condition: str, states: Tensor, layer: RecurrentLayer) -> float:
    """Count floating point operations with meta tensors, which have shapes but no values.

    The count is not made on a GPU. There, cuDNN runs a whole recurrent layer as one operation,
    and torch does not count the arithmetic inside it.
    """
    with FlopCounterMode(display=False) as counter:
        _run_layer(condition, states.to("meta"), copy.deepcopy(layer).to("meta"))
    return float(counter.get_total_flops())


def _median_times(
    trial: Trial[CostSettings], inputs: Sequence[Tensor], layer: RecurrentLayer
) -> list[float]:
    """Return the median time in seconds at each length.

    Every repetition measures all lengths, so that a slow phase of the machine affects all of them.
    """
    for states in inputs:  # the first run also chooses kernels and allocates memory
        _measure_seconds(trial.condition, states, layer)
    rounds = []
    for number in range(trial.settings.repeats):
        trial.progress("measuring", number / trial.settings.repeats)
        rounds.append([_measure_seconds(trial.condition, states, layer) for states in inputs])
    return [statistics.median(times) for times in zip(*rounds, strict=True)]


def _measure_seconds(condition: str, states: Tensor, layer: RecurrentLayer) -> float:
    _wait_for_gpu(states)
    start = time.perf_counter()
    _run_layer(condition, states, layer)
    _wait_for_gpu(states)
    return time.perf_counter() - start


def _wait_for_gpu(states: Tensor) -> None:
    if states.is_cuda:
        torch.cuda.synchronize()


def _peak_memory(condition: str, states: Tensor, layer: RecurrentLayer) -> float:
    """Return the peak of the GPU memory, in bytes, that one run of the layer allocates."""
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    _run_layer(condition, states, layer)
    return float(torch.cuda.max_memory_allocated() - before)


def judge(results: Results) -> Verdict:
    def exponents(condition: str, quantity: str, end: str = "") -> list[float]:
        return results.over_seeds(condition, f"exponent of {quantity}{end}")

    grow = "grow with the length to the power of"
    lower = "lower end of the 95% interval of its exponent is"
    upper = "upper end of the 95% interval of its exponent is"
    return conclude(
        Effect(
            f"the operations of attention {grow}", exponents(ATTENTION, "operations"), above=1.9
        ),
        Effect(
            f"the operations of a recurrent layer {grow}",
            exponents(RECURRENT, "operations"),
            below=1.1,
        ),
        Effect(
            f"measured time of attention: the {lower}",
            exponents(ATTENTION, "seconds", ", low"),
            above=1.5,
        ),
        Effect(
            f"measured time of a recurrent layer: the {upper}",
            exponents(RECURRENT, "seconds", ", high"),
            below=1.5,
        ),
    )


def plot(results: Results) -> list[Chart]:
    numbers = results.measurements[0].numbers
    indices = range(sum(name.startswith("length ") for name in numbers))
    lengths = [results.mean(ATTENTION, f"length {index}") for index in indices]
    labels = {
        "operations": "floating point operations",
        "seconds": "seconds",
        "bytes": "bytes of GPU memory",
    }
    return [
        condition_lines(
            results,
            ("length", label),
            (ATTENTION, RECURRENT),
            lengths,
            [f"{quantity} {index}" for index in indices],
            logarithmic_x=True,
            logarithmic_y=True,
        )
        for quantity, label in labels.items()
        if f"{quantity} 0" in numbers
    ]


CLAIM = declare_claim(
    "cost",
    conditions=(ATTENTION, RECURRENT),
    sizes=CostSettings,
    measure=measure,
    judge=judge,
    plot=plot,
    is_timed=True,
)
