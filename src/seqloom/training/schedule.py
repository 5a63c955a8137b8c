"""What changes with the step: the learning rate, what is fed in, and what teaches."""

import math
from typing import assert_never

from seqloom.config.training import (
    ConstantConfig,
    CosineConfig,
    FeedingConfig,
    FreeRunningConfig,
    InverseSquareRootConfig,
    ScheduleConfig,
    ScheduledSamplingConfig,
    TeacherForcingConfig,
    TrainingConfig,
)


def rate_factor(config: ScheduleConfig, step: int, steps: int) -> float:
    """The share of the highest learning rate that step 1, 2, …, `steps` uses."""
    warmup = max(min(4_000, steps // 10), 1) if config.warmup is None else config.warmup
    if step < warmup:
        return step / warmup
    match config:
        case ConstantConfig():
            return 1.0
        case InverseSquareRootConfig():
            return math.sqrt(warmup / step)
        case CosineConfig(floor=floor):
            progress = (step - warmup) / max(steps - warmup, 1)
            return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))
        case _:
            assert_never(config)


def truth_share(config: FeedingConfig, step: int) -> float:
    """How often the decoder is fed the true previous token, rather than its own, at step 1, 2, …"""
    match config:
        case TeacherForcingConfig():
            return 1.0
        case FreeRunningConfig():
            return 0.0
        case ScheduledSamplingConfig(shape=shape, start=start, end=end, steps=steps):
            progress = 1.0 if step >= steps else (step - 1) / (steps - 1)
            left = _left(shape, progress)
            return end + (start - end) * left
        case _:
            assert_never(config)


def takes_risks(settings: TrainingConfig, step: int) -> bool:
    """Does step 1, 2, … learn from outputs of the model's own?"""
    return settings.risk is not None and step > settings.risk.after


def _left(shape: str, progress: float) -> float:
    """A curve from 1 down to 0 (Bengio et al. 2015, figure 2)."""
    match shape:
        case "linear":
            return 1 - progress
        case "exponential":
            return (math.exp(-5 * progress) - math.exp(-5)) / (1 - math.exp(-5))
        case _:  # inverse sigmoid: slow, then fast, then slow

            def sigmoid(x: float) -> float:
                return 1 / (1 + math.exp(10 * (x - 0.5)))

            return (sigmoid(progress) - sigmoid(1)) / (sigmoid(0) - sigmoid(1))
