"""Errors of forecasts, and simple baselines to compare them with.

Shapes: N examples, S observed steps, T forecast steps, D columns (numbers per step).
"""

import numpy as np
from numpy.typing import NDArray

from seqloom.metrics.score import Score

Numbers = NDArray[np.float64]

SIGNATURE = "standardised by the training split"


def squared_error(outputs: Numbers, targets: Numbers, deviation: Numbers) -> Score:
    """Mean of ((output - target) / deviation)² over all values.

    deviation: (D,) standard deviation of each column in the training split
    """
    return Score("MSE", float(np.mean(((outputs - targets) / deviation) ** 2)), SIGNATURE, False)


def absolute_error(outputs: Numbers, targets: Numbers, deviation: Numbers) -> Score:
    """Mean of |output - target| / deviation over all values.

    deviation: (D,) standard deviation of each column in the training split
    """
    return Score("MAE", float(np.mean(np.abs(outputs - targets) / deviation)), SIGNATURE, False)


def average_displacement(outputs: Numbers, targets: Numbers) -> Score:
    """Average displacement error (ADE): mean distance between outputs and targets over all steps,
    in the units of the data. Both have the shape (N, T, D), with N examples."""
    return Score("ADE", float(_distances(outputs, targets).mean()), None, False)


def final_displacement(outputs: Numbers, targets: Numbers) -> Score:
    """Final displacement error (FDE): mean distance between outputs and targets at the last step,
    in the units of the data. Both have the shape (N, T, D), with N examples."""
    return Score("FDE", float(_distances(outputs, targets)[:, -1].mean()), None, False)


def _distances(outputs: Numbers, targets: Numbers) -> Numbers:
    """Euclidean distance between outputs and targets: (N, T, D), (N, T, D) -> (N, T)"""
    distances: Numbers = np.linalg.norm(outputs - targets, axis=-1)
    return distances


def predict_last_value(observed: Numbers, steps: int) -> Numbers:
    """Repeat the last observed value T = `steps` times: (N, S, D) -> (N, T, D)"""
    return np.repeat(observed[:, -1:], steps, axis=1)


def extrapolate_linearly(observed: Numbers, steps: int) -> Numbers:
    """Continue the least-squares line through the observed values for T = `steps` steps.

    (N, S, D) -> (N, T, D). Each of the D columns has its own line. If there is only one observed
    step, its values are repeated.
    """
    length = observed.shape[1]
    if length == 1:
        return predict_last_value(observed, steps)
    times = np.arange(length) - (length - 1) / 2
    slope = np.einsum("s,nsd->nd", times, observed) / np.sum(times**2)
    future_times = np.arange(1, steps + 1) + (length - 1) / 2
    lines: Numbers = observed.mean(1)[:, None] + slope[:, None] * future_times[:, None]
    return lines
