"""Values that change during training: learning rate, scheduled sampling, minimum risk training."""

import math
from typing import assert_never

from seqloom.config.schema.training import (
    ConstantConfig,
    CosineConfig,
    DecoderInputConfig,
    FreeRunningConfig,
    InverseSquareRootConfig,
    ScheduleConfig,
    ScheduledSamplingConfig,
    TeacherForcingConfig,
    TrainingConfig,
)


def learning_rate_factor(config: ScheduleConfig, step: int, steps: int) -> float:
    """Return the learning rate at a step as a fraction of the peak learning rate.

    The fraction rises linearly to 1 during the warm-up. Then it stays at 1 or falls, depending on
    the schedule.

    step:  1, 2, …, `steps`
    steps: total number of steps
    """
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


def target_share(config: DecoderInputConfig, step: int) -> float:
    """Return the probability that the decoder input is the target token.

    Otherwise the decoder input is the token that the model predicts.
    """
    match config:
        case TeacherForcingConfig():
            return 1.0
        case FreeRunningConfig():
            return 0.0
        case ScheduledSamplingConfig(shape=shape, start=start, end=end, steps=steps):
            progress = 1.0 if step >= steps else (step - 1) / (steps - 1)
            return end + (start - end) * _decay(shape, progress)
        case _:
            assert_never(config)


def uses_minimum_risk(settings: TrainingConfig, step: int) -> bool:
    """True if this step minimises the risk of sampled outputs (minimum risk training)."""
    return settings.minimum_risk is not None and step > settings.minimum_risk.after


def _decay(shape: str, progress: float) -> float:
    """Return the value of a decay curve (Bengio et al. 2015, figure 2).

    The curve falls from 1 at progress 0 to 0 at progress 1.

    shape: "linear", "exponential" or "inverse-sigmoid"
    """
    match shape:
        case "linear":
            return 1 - progress
        case "exponential":
            return (math.exp(-5 * progress) - math.exp(-5)) / (1 - math.exp(-5))
        case _:  # inverse sigmoid

            def sigmoid(x: float) -> float:
                return 1 / (1 + math.exp(10 * (x - 0.5)))

            return (sigmoid(progress) - sigmoid(1)) / (sigmoid(0) - sigmoid(1))
