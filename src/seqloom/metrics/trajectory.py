"""How far forecasts are from what came."""

import numpy as np
from numpy.typing import NDArray

from seqloom.metrics.score import Score

Numbers = NDArray[np.float64]


def squared_error(outputs: Numbers, truth: Numbers, deviation: Numbers) -> Score:
    """The mean square of the error of every number, in deviations of the training split."""
    return Score("MSE", float(np.mean(((outputs - truth) / deviation) ** 2)), SCALED, False)


def absolute_error(outputs: Numbers, truth: Numbers, deviation: Numbers) -> Score:
    """The mean size of the error of every number, in deviations of the training split."""
    return Score("MAE", float(np.mean(np.abs(outputs - truth) / deviation)), SCALED, False)


def average_displacement(outputs: Numbers, truth: Numbers) -> Score:
    """ADE: the mean distance over all steps, in the units of the data. (N, T, D) both"""
    return Score("ADE", float(_distances(outputs, truth).mean()), None, False)


def final_displacement(outputs: Numbers, truth: Numbers) -> Score:
    """FDE: the mean distance at the last step."""
    return Score("FDE", float(_distances(outputs, truth)[:, -1].mean()), None, False)


SCALED = "standardised by the training split"


def _distances(outputs: Numbers, truth: Numbers) -> Numbers:
    """(N, T)"""
    distances: Numbers = np.linalg.norm(outputs - truth, axis=-1)
    return distances


def stay(observed: Numbers, steps: int) -> Numbers:
    """The last value, for ever: (N, S, D) -> (N, T, D)"""
    return np.repeat(observed[:, -1:], steps, axis=1)


def straight_on(observed: Numbers, steps: int) -> Numbers:
    """The line that fits the observed values best, column by column: (N, S, D) -> (N, T, D)"""
    length = observed.shape[1]
    if length == 1:
        return stay(observed, steps)
    times = np.arange(length) - (length - 1) / 2
    slope = np.einsum("s,nsd->nd", times, observed) / np.sum(times**2)
    ahead = np.arange(1, steps + 1) + (length - 1) / 2
    lines: Numbers = observed.mean(1)[:, None] + slope[:, None] * ahead[:, None]
    return lines
