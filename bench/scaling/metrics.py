"""Figures derived from the measurements. This module imports nothing heavy."""

import math
from collections.abc import Sequence
from typing import Any


def growth_exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """k in time ~ size^k, by least squares on the logarithms."""
    log_sizes, log_times = [math.log(size) for size in sizes], [math.log(time) for time in times]
    mean_size, mean_time = sum(log_sizes) / len(log_sizes), sum(log_times) / len(log_times)
    covariance = sum(
        (size - mean_size) * (time - mean_time)
        for size, time in zip(log_sizes, log_times, strict=True)
    )
    return covariance / sum((size - mean_size) ** 2 for size in log_sizes)


def phase_seconds(run: dict[str, Any], first: str, last: str, clock: str = "seconds") -> float:
    """Seconds from the end of the phase `first` to the end of the phase `last`."""
    return float(run["ends"][last][clock]) - float(run["ends"][first][clock])
