"""Made-up beginnings for runs that forecast: of the size of what they were trained on."""

import numpy as np

from seqloom.data.series import Numbers
from seqloom.runs.forecaster import Forecaster

SWING = 0.8
"""How far a column moves, in deviations of the training split."""


def made_up_window(run: Forecaster) -> tuple[Numbers, Numbers]:
    """(observed rows, context of the rows to come); the same every time."""
    task = run.task
    columns = len(task.scale.errors)
    rows = np.arange(task.config.observe + task.config.predict)
    # Every column swings once in about the time that is seen, each with a phase of its own.
    turns = rows[:, None] / len(rows) + np.arange(len(task.scale.mean)) / 4
    swings = task.scale.mean + task.scale.deviation * SWING * np.sin(2 * np.pi * turns)
    match task.config.form:
        case "steps":
            values = np.cumsum(swings, axis=0)
        case "relative" | "values":
            values = swings
    return values[: task.config.observe], values[task.config.observe :, columns:]
