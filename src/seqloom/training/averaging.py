"""Weight averaging.

The mean of the weights at several steps often scores better than the last weights.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import assert_never

import torch
from torch import Tensor, nn

from seqloom.config.schema.training import (
    AveragingConfig,
    LastWeightsConfig,
    MovingAverageConfig,
    NoAveragingConfig,
)
from seqloom.runs.weights import weights_of

Weights = dict[str, Tensor]


class Averager:
    """Averages the weights of a model during training.

    This base class defines the methods, but does not average: `average` returns the current weights
    of the model. Training uses it if averaging is switched off.
    """

    def after_step(self, model: nn.Module) -> None:
        """Update the average after an optimiser step."""

    def before_evaluation(self, model: nn.Module, step: int) -> None:
        """Update the average before an evaluation."""

    def average(self, model: nn.Module) -> Weights:
        """Return the averaged weights."""
        return weights_of(model)

    def tensors(self) -> Weights:
        """Return the state of the averager as named tensors, to store them in a checkpoint."""
        return {}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore a state that the method `tensors` returned earlier."""

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """Context manager. Inside the context, the model uses the averaged weights."""
        yield


class Average(Averager):
    """Base class of the averagers `LastWeights` and `MovingAverage`.

    The context manager `applied` sets the weights of the model to the average. When the context
    ends, it restores the previous weights.
    """

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        current = {name: weight.clone() for name, weight in weights_of(model).items()}
        _assign(model, self.average(model))
        try:
            yield
        finally:
            _assign(model, current)


class LastWeights(Average):
    """The mean of the weights at the last `count` evaluations."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.kept: dict[int, Weights] = {}
        """Weights by step. If a resumed run repeats an evaluation, its weights count only
        once."""

    def before_evaluation(self, model: nn.Module, step: int) -> None:
        self.kept[step] = {name: weight.clone() for name, weight in weights_of(model).items()}
        for old in sorted(self.kept)[: -self.count]:
            del self.kept[old]

    def average(self, model: nn.Module) -> Weights:
        if not self.kept:
            return weights_of(model)
        # A mean of equal numbers can differ from them in the last bit, so frozen weights are not
        # averaged.
        return {
            name: torch.stack([self.kept[step][name] for step in sorted(self.kept)]).mean(0)
            if parameter.requires_grad
            else parameter.detach()
            for name, parameter in model.named_parameters()
        }

    def tensors(self) -> Weights:
        return {
            f"{step}:{name}": weight
            for step, weights in self.kept.items()
            for name, weight in weights.items()
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        self.kept = {}
        for key, weight in tensors.items():
            step, name = key.split(":", 1)
            self.kept.setdefault(int(step), {})[name] = weight


class MovingAverage(Average):
    """Exponential moving average: m ← d m + (1 - d) w after every step.

    m is the average, w are the current weights, and d = min(decay, t / (t + 10)) at step t. After
    the first step, m is w. In the first steps, d is small, so the weights of these steps soon have
    little influence on m.
    """

    def __init__(self, decay: float) -> None:
        self.decay = decay
        self.steps = 0
        self.mean: Weights = {}

    def after_step(self, model: nn.Module) -> None:
        self.steps += 1
        decay = min(self.decay, self.steps / (self.steps + 10))
        weights = weights_of(model)
        if not self.mean:
            self.mean = {name: weight.clone() for name, weight in weights.items()}
            return
        # One call for all tensors: launching a hundred small kernels takes longer than running them.
        means = [self.mean[name] for name in weights]
        torch._foreach_lerp_(means, list(weights.values()), 1 - decay)

    def average(self, model: nn.Module) -> Weights:
        return self.mean or weights_of(model)

    def tensors(self) -> Weights:
        return {"steps": torch.tensor(self.steps), **{f"m:{k}": v for k, v in self.mean.items()}}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        self.steps = int(tensors["steps"])
        self.mean = {key[2:]: mean for key, mean in tensors.items() if key.startswith("m:")}


def _assign(model: nn.Module, weights: Weights) -> None:
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])


def build_averager(config: AveragingConfig) -> Averager:
    match config:
        case NoAveragingConfig():
            return Averager()
        case LastWeightsConfig(count=count):
            return LastWeights(count)
        case MovingAverageConfig(decay=decay):
            return MovingAverage(decay)
        case _:
            assert_never(config)
