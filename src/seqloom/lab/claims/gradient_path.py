"""Tests the claim: through attention, a gradient reaches every word in one step.

Through a recurrence, the gradient needs one step per word.
"""

import math
from dataclasses import dataclass, replace

import torch

from seqloom.config.schema.model import ModelConfig
from seqloom.core.batch import Padded
from seqloom.lab.charts import condition_lines
from seqloom.lab.claim import Trial, declare_claim
from seqloom.lab.models.random_models import (
    random_batch,
    random_model,
    recurrent_config,
    transformer_config,
)
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.viz.chart import Chart

RECURRENCE, ATTENTION, TRANSFORMER = "GRU without attention", "GRU with attention", "Transformer"
LENGTHS = (5, 10, 20, 40, 80)
GRADIENTS = [f"gradient at {length}" for length in LENGTHS]
LENGTH_RANGE = f"from {LENGTHS[0]} to {LENGTHS[-1]} words"


@dataclass(frozen=True)
class GradientPathSettings:
    width: int
    rows: int


def configure(trial: Trial[GradientPathSettings]) -> ModelConfig:
    if trial.condition == TRANSFORMER:
        return transformer_config(trial.settings.width, layers=2)
    return recurrent_config(trial.settings.width, attention=trial.condition == ATTENTION)


def measure(trial: Trial[GradientPathSettings]) -> Numbers:
    """Measure how strongly the last prediction depends on the first source vector.

    The loss of the last target token has a gradient with respect to the first source vector. For
    each source length, returns the norm of this gradient, averaged over the examples of a batch.
    """
    # Over 160 recurrent steps the gradient becomes too small for single precision.
    model = random_model(configure(trial), trial.seed).double()
    numbers = {}
    for length, name in zip(LENGTHS, GRADIENTS, strict=True):
        batch = random_batch(trial.settings.rows, length, trial.seed)
        assert isinstance(batch.source, Padded)
        source = batch.source.values.double().requires_grad_()  # (B, S, D)
        double_batch = replace(batch, source=Padded(source, batch.source.lengths))
        logits = model(double_batch).logits()[:, -1]  # (B, V)
        torch.nn.functional.cross_entropy(logits, batch.targets.values[:, -1]).backward()
        assert source.grad is not None
        numbers[name] = source.grad[:, 0].norm(dim=-1).mean().item() * trial.settings.rows
    return numbers


def judge(results: Results) -> Verdict:
    def decay(condition: str) -> list[float]:
        """Return, for each seed, by how many orders of magnitude the gradient norm falls.

        The fall is measured from the shortest source to the longest.
        """
        shortest, longest = (results.over_seeds(condition, GRADIENTS[index]) for index in (0, -1))
        return _log_ratios(shortest, longest)

    longest = [
        results.over_seeds(condition, GRADIENTS[-1]) for condition in (ATTENTION, RECURRENCE)
    ]
    # Attention over T words gives each word 1/T of the gradient. This decay is not caused by the
    # length of the path, so it is allowed.
    allowed, unit = math.log10(2 * LENGTHS[-1] / LENGTHS[0]), "orders of magnitude"
    return conclude(
        Effect(
            f"{LENGTH_RANGE}, the gradient along the recurrence falls by",
            decay(RECURRENCE),
            above=allowed,
            unit=unit,
        ),
        Effect(
            f"{LENGTH_RANGE}, the gradient through attention falls by",
            decay(ATTENTION),
            below=allowed,
            unit=unit,
        ),
        Effect(
            f"{LENGTH_RANGE}, the gradient in a Transformer falls by",
            decay(TRANSFORMER),
            below=allowed,
            unit=unit,
        ),
        Effect(
            f"at {LENGTHS[-1]} words, the gradient with attention exceeds that without by",
            _log_ratios(*longest),
            above=1.0,
            unit=unit,
        ),
    )


def _log_ratios(numerators: list[float], denominators: list[float]) -> list[float]:
    """Return log10 of the ratios. Values below 1e-300 count as 1e-300, to avoid log(0)."""
    smallest = 1e-300
    pairs = zip(numerators, denominators, strict=True)
    return [math.log10(max(first, smallest) / max(second, smallest)) for first, second in pairs]


def plot(results: Results) -> list[Chart]:
    labels = ("words", "gradient of the last prediction at the first word")
    axes = {"logarithmic_x": True, "logarithmic_y": True}
    conditions = (RECURRENCE, ATTENTION, TRANSFORMER)
    return [condition_lines(results, labels, conditions, LENGTHS, GRADIENTS, **axes)]


CLAIM = declare_claim(
    "gradient-path",
    conditions=(RECURRENCE, ATTENTION, TRANSFORMER),
    sizes=GradientPathSettings,
    measure=measure,
    judge=judge,
    plot=plot,
)
