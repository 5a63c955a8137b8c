"""Tests the claim: only soft attention gives queries and keys a gradient, hard attention does not.

Finite differences of the loss confirm the gradients of autograd.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from seqloom.lab.charts import condition_bars
from seqloom.lab.claim import Trial, declare_claim
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.nn.attention import (
    AttentionScore,
    DotScore,
    ExactScore,
    RbfScore,
    Selection,
    attention_weights,
)
from seqloom.viz.chart import Chart

EXACT, NEAREST, BEST, SOFT = "exact match", "nearest key", "best score", "softmax"
HARD = (EXACT, NEAREST, BEST)
MOVED = ("queries", "keys")
"""The tensors that are perturbed for the finite differences."""
ZERO = 1e-12
"""Gradient norms below this bound count as zero."""
STEP = 1e-5
"""Length of the step of the finite differences. The typical distance between queries and keys is
√(2·width), so that a step almost never changes the selected key."""


@dataclass(frozen=True)
class HardAttentionSettings:
    rows: int
    keys: int
    width: int


@dataclass(frozen=True)
class Inputs:
    """Random inputs of attention: B rows, each with one query, S keys and S values.

    queries: (B, 1, 1, D)
    keys:    (B, 1, S, D)
    values:  (B, 1, S, D)
    target:  (B, 1, 1, D) vectors with which the loss compares the context vectors
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    target: Tensor


def draw_inputs(settings: HardAttentionSettings, seed: int) -> Inputs:
    """Draw vectors from the standard normal distribution.

    They are float64, so that rounding errors do not disturb the finite differences.
    """
    generator = torch.Generator().manual_seed(seed)

    def normal(positions: int) -> Tensor:
        shape = (settings.rows, 1, positions, settings.width)
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    return Inputs(normal(1), normal(settings.keys), normal(settings.keys), normal(1))


def measure(trial: Trial[HardAttentionSettings]) -> Numbers:
    """Measure the gradient of ‖context - target‖² by autograd and by finite differences.

    Returns these values:

    - the norms of the gradients with respect to queries, keys and values
    - "total weight": the sum of the attention weights of a query, averaged over the queries
    - "changed by queries", "changed by keys": the fraction of rows whose loss changes if the
      queries or the keys move by a small step
    - "slope error of queries", "slope error of keys": the relative difference between the slope by
      autograd and the slope by finite differences
    """
    inputs = draw_inputs(trial.settings, trial.seed)
    leaves = {
        name: getattr(inputs, name).clone().requires_grad_()
        for name in ("queries", "keys", "values")
    }
    losses = _row_losses(trial.condition, **leaves, target=inputs.target)
    if losses.requires_grad:
        losses.sum().backward()
    gradients = {
        name: torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
        for name, leaf in leaves.items()
    }
    weights = condition_weights(trial.condition, inputs.queries, inputs.keys)
    numbers = {name: gradient.norm().item() for name, gradient in gradients.items()}
    numbers["total weight"] = weights.sum(-1).mean().item()
    for name in MOVED:
        changed, error = _finite_difference(trial, inputs, name, gradients[name])
        numbers[f"changed by {name}"] = changed
        numbers[f"slope error of {name}"] = error
    return numbers


def _row_losses(
    condition: str, queries: Tensor, keys: Tensor, values: Tensor, target: Tensor
) -> Tensor:
    """Return the loss of each row: ‖context - target‖², (B,)

    The context is the output of attention.

    condition: how attention weights the keys, for example "softmax" or "nearest key"
    """
    context = condition_weights(condition, queries, keys) @ values  # (B, 1, 1, D)
    return (context - target).square().sum((1, 2, 3))


def _finite_difference(
    trial: Trial[HardAttentionSettings], inputs: Inputs, name: str, gradient: Tensor
) -> tuple[float, float]:
    """Compare the gradient of autograd with finite differences of the loss.

    Each row of queries or keys is moved by +STEP and by -STEP in a random direction. The two losses
    give the measured slope of the row; the gradient gives its computed slope. Returns two values:

    - the fraction of rows whose two losses differ
    - the relative error: the norm of (measured slopes - computed slopes), divided by the norm of
      the measured slopes. It is 0 if all slopes are 0.

    name:     "queries" or "keys", the tensor to move
    gradient: gradient of the loss with respect to this tensor, as computed by autograd
    """
    generator = torch.Generator().manual_seed(trial.seed + 1)
    origin = getattr(inputs, name)
    direction = torch.randn(origin.shape, generator=generator, dtype=origin.dtype)
    direction /= direction.flatten(1).norm(dim=1).view(-1, 1, 1, 1)  # unit length in each row

    def losses(step: float) -> Tensor:
        moved = {each: getattr(inputs, each) for each in ("queries", "keys", "values", "target")}
        moved[name] = origin + step * direction
        return _row_losses(trial.condition, **moved)

    forward, backward = losses(STEP), losses(-STEP)  # (B,)
    measured = (forward - backward) / (2 * STEP)
    computed = (gradient * direction).sum((1, 2, 3))
    error = (measured - computed).norm() / measured.norm().clamp_min(ZERO)
    return (forward != backward).double().mean().item(), error.item()


def condition_weights(condition: str, queries: Tensor, keys: Tensor) -> Tensor:
    """Return the attention weights under a condition: (B, 1, 1, D), (B, 1, S, D) -> (B, 1, 1, S)

    condition: how the weights are computed. EXACT selects the keys that equal the query, NEAREST
               the nearest key, and BEST the key with the highest dot product. SOFT is the softmax
               of the scaled dot products
    """
    methods: dict[str, tuple[AttentionScore, Selection]] = {
        EXACT: (ExactScore(), "exact"),
        NEAREST: (RbfScore(1.0), "argmax"),  # the nearest key has the highest RBF score
        BEST: (DotScore("sqrt", keys.shape[-1]), "argmax"),
        SOFT: (DotScore("sqrt", keys.shape[-1]), "softmax"),
    }
    score, selection = methods[condition]
    return attention_weights(
        score(queries, keys), torch.ones(keys.shape[2], dtype=torch.bool), selection
    )


def judge(results: Results) -> Verdict:
    def largest(condition: str, *names: str) -> list[float]:
        """Return, for each seed, the maximum of the measured values with these names."""
        numbers = [results.over_seeds(condition, name) for name in names]
        return [max(values) for values in zip(*numbers, strict=True)]

    hard = [
        effect
        for condition in HARD
        for effect in (
            Effect(
                f"{condition}: the gradient at queries and keys is",
                largest(condition, *MOVED),
                below=ZERO,
            ),
            Effect(
                f"{condition}: a small step of queries or keys changes the loss of",
                largest(condition, *(f"changed by {name}" for name in MOVED)),
                below=0.01,
                format_spec=".2%",
                unit="of the rows",
            ),
        )
    ]
    soft = [
        effect
        for name in MOVED
        for effect in (
            Effect(f"softmax: the gradient at {name} is", largest(SOFT, name), above=ZERO),
            Effect(
                f"softmax: a small step of {name} changes the loss of",
                results.over_seeds(SOFT, f"changed by {name}"),
                above=0.99,
                format_spec=".2%",
                unit="of the rows",
            ),
            Effect(
                f"softmax: the measured slope at {name} differs from that of autograd by a "
                "fraction of",
                results.over_seeds(SOFT, f"slope error of {name}"),
                below=1e-3,
            ),
        )
    ]
    return conclude(
        *hard,
        Effect(
            "exact match: the fraction of random queries that match a key is",
            largest(EXACT, "total weight"),
            below=0.01,
        ),
        Effect("nearest key: the gradient at values is", largest(NEAREST, "values"), above=ZERO),
        *soft,
    )


def plot(results: Results) -> list[Chart]:
    labels = {name: f"gradient at {name}" for name in ("queries", "keys", "values")}
    for name in MOVED:
        labels[f"changed by {name}"] = f"rows whose loss changes with a small step of {name}"
    return [condition_bars(results, label, (*HARD, SOFT), name) for name, label in labels.items()]


CLAIM = declare_claim(
    "hard-attention",
    conditions=(*HARD, SOFT),
    sizes=HardAttentionSettings,
    measure=measure,
    judge=judge,
    plot=plot,
)
