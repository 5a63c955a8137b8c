"""Queries and keys receive a gradient from soft attention, but none from hard attention."""

from dataclasses import dataclass

import torch
from torch import Tensor

from seqloom.lab.claim import Claim, Column, Trial
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
from seqloom.viz.chart import BarChart, Chart

EXACT, NEAREST, BEST, SOFT = "exact match", "nearest key", "best score", "softmax"
ZERO = 1e-12
"""Gradient norms below this bound count as zero."""


@dataclass(frozen=True)
class HardAttentionSettings:
    rows: int
    keys: int
    width: int


def measure(trial: Trial[HardAttentionSettings]) -> Numbers:
    """Measure the norms of the gradients of ‖context - target‖² at queries, keys and values."""
    settings = trial.settings
    generator = torch.Generator().manual_seed(trial.seed)

    def random(positions: int) -> Tensor:
        return torch.randn(settings.rows, 1, positions, settings.width, generator=generator)

    queries, target = random(1), random(1)  # (B, 1, 1, D)
    keys, values = random(settings.keys), random(settings.keys)  # (B, 1, S, D)
    leaves = [tensor.requires_grad_() for tensor in (queries, keys, values)]
    weights = condition_weights(trial.condition, queries, keys)  # (B, 1, 1, S)
    (weights @ values - target).square().sum().backward()
    norms = [0.0 if leaf.grad is None else leaf.grad.norm().item() for leaf in leaves]
    return {
        **dict(zip(("queries", "keys", "values"), norms, strict=True)),
        "total weight": weights.detach().sum(-1).mean().item(),
    }


def condition_weights(condition: str, queries: Tensor, keys: Tensor) -> Tensor:
    """Compute the weights of one kind of attention: (B, 1, 1, D), (B, 1, S, D) -> (B, 1, 1, S)

    condition: the name of this kind of attention
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
        """Return, for each seed, the largest of the named values."""
        numbers = [results.over_seeds(condition, name) for name in names]
        return [max(values) for values in zip(*numbers, strict=True)]

    hard = [
        Effect(
            f"{condition}: the gradient at queries and keys is",
            largest(condition, "queries", "keys"),
            below=ZERO,
        )
        for condition in (EXACT, NEAREST, BEST)
    ]
    return conclude(
        *hard,
        Effect(
            "exact match: the fraction of random queries that match a key is",
            largest(EXACT, "total weight"),
            below=0.01,
        ),
        Effect("nearest key: the gradient at values is", largest(NEAREST, "values"), above=ZERO),
        Effect("softmax: the gradient at queries is", largest(SOFT, "queries"), above=ZERO),
        Effect("softmax: the gradient at keys is", largest(SOFT, "keys"), above=ZERO),
    )


def plot(results: Results) -> list[Chart]:
    conditions = (EXACT, NEAREST, BEST, SOFT)
    return [
        BarChart(
            f"gradient at {name}",
            conditions,
            [results.over_seeds(condition, name) for condition in conditions],
        )
        for name in ("queries", "keys", "values")
    ]


CLAIM = Claim(
    name="hard-attention",
    sentence="Selecting one key, by exact match, as the nearest one or by the best score, gives "
    "queries and keys no gradient to learn from; a soft mixture of all values does.",
    source="L0 §2.2.1 (ideas -1, 0 and 1); L1, Attention; L4 §2(c)",
    setup="Random queries attend to random keys. The squared distance of the context to a random "
    "target is differentiated. Measured: the norm of its gradient at queries, keys and values.",
    confirms="With every hard selection the gradient at queries and keys is zero, exact match finds "
    "no key, the nearest key still gives its value a gradient, and the softmax gives all three one.",
    refutes="A hard selection gives queries or keys a gradient, or the softmax gives them none.",
    conditions=(EXACT, NEAREST, BEST, SOFT),
    sizes={
        "tiny": HardAttentionSettings(rows=2, keys=4, width=8),
        "small": HardAttentionSettings(rows=200, keys=16, width=64),
        "full": HardAttentionSettings(rows=2_000, keys=64, width=512),
    },
    measure=measure,
    judge=judge,
    plot=plot,
    columns=(
        Column("queries", "gradient at queries", ".3g"),
        Column("keys", "gradient at keys", ".3g"),
        Column("values", "gradient at values", ".3g"),
        Column("total weight", "total weight", ".2f"),
    ),
)
