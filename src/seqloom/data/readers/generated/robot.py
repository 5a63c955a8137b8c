"""Generates paths of a robot with two wheels, and the speeds of its wheels."""

import math
import random
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from seqloom.config.schema.corpora import RobotConfig
from seqloom.data.example import Split
from seqloom.data.readers.generated.sampling import gaussian, generate

AXLE = 2.0
"""Distance between the two wheels. A wheel moves at most 1 per step."""
MIN_STEPS, MAX_STEPS = 3, 8
"""Minimum and maximum number of steps for which the wheels keep their speeds."""


def robot_paths(config: RobotConfig, steps: int, split: Split) -> Iterator[NDArray[np.float64]]:
    """Yield generated paths: (steps, 4) with the columns x and y (the position of the robot), left
    and right (the speeds of its wheels)."""

    def draw(generator: random.Random) -> tuple[str, list[tuple[float, ...]]]:
        rows = list(_drive(generator, steps, config.noise))
        return repr(rows[0]), rows

    paths = generate("robot", config.seed, config.examples, split, draw, "lower examples")
    return map(np.array, paths)


def _drive(generator: random.Random, steps: int, noise: float) -> Iterator[tuple[float, ...]]:
    """Yield (x, y, left, right) for each step: the position after the step, and the speeds of the
    left and the right wheel in the step. Noise is added to all four numbers.

    The robot has a differential drive. In each step, it first turns by (right - left) / AXLE
    radians and then moves forward by (left + right) / 2. After every MIN_STEPS to MAX_STEPS steps,
    both speeds are drawn again at random. So the path cannot be predicted without the speeds.

    noise: standard deviation of the noise
    """
    x = y = 0.0
    direction = generator.uniform(0, 2 * math.pi)
    left = right = 0.0
    remaining = 0
    for _ in range(steps):
        if remaining == 0:
            left, right = (generator.uniform(-0.2, 1.0) for _ in range(2))
            remaining = generator.randint(MIN_STEPS, MAX_STEPS)
        remaining -= 1
        direction += (right - left) / AXLE
        x += (left + right) / 2 * math.cos(direction)
        y += (left + right) / 2 * math.sin(direction)
        yield tuple(value + noise * gaussian(generator) for value in (x, y, left, right))
