"""A match that is picked, exact or nearest, gives keys and queries no gradient; a soft one does."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from seqloom.lab.claim import Claim, Column, Trial
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.nn.attention import DotScore, RbfScore, Score, weigh
from seqloom.viz.chart import BarChart, Chart

EXACT, NEAREST, BEST, SOFT = "exact match", "nearest key", "best score", "softmax"
NOTHING = 1e-12
"""A gradient below this is none."""


@dataclass(frozen=True)
class Settings:
    rows: int
    keys: int
    width: int


def measure(trial: Trial[Settings]) -> Numbers:
    """The norm of the gradient of ‖context - target‖² at queries, keys and values."""
    settings = trial.settings
    generator = torch.Generator().manual_seed(trial.seed)

    def random(positions: int) -> Tensor:
        return torch.randn(settings.rows, 1, positions, settings.width, generator=generator)

    queries, target = random(1), random(1)  # (B, 1, 1, D)
    keys, values = random(settings.keys), random(settings.keys)  # (B, 1, S, D)
    leaves = [tensor.requires_grad_() for tensor in (queries, keys, values)]
    weights = select(trial.condition, queries, keys)  # (B, 1, 1, S)
    (weights @ values - target).square().sum().backward()
    norms = [0.0 if leaf.grad is None else leaf.grad.norm().item() for leaf in leaves]
    return {
        **dict(zip(("queries", "keys", "values"), norms, strict=True)),
        "found": weights.detach().sum(-1).mean().item(),
    }


def select(condition: str, queries: Tensor, keys: Tensor) -> Tensor:
    """(B, 1, 1, D), (B, 1, S, D) -> weights (B, 1, 1, S)"""
    if condition == EXACT:
        return (queries == keys).all(-1).to(queries.dtype).unsqueeze(2)
    ways: dict[str, tuple[Score, Literal["softmax", "argmax"]]] = {
        NEAREST: (RbfScore(1.0), "argmax"),  # the closest key has the highest such score
        BEST: (DotScore("sqrt", keys.shape[-1]), "argmax"),
        SOFT: (DotScore("sqrt", keys.shape[-1]), "softmax"),
    }
    score, selection = ways[condition]
    return weigh(score(queries, keys), torch.ones(keys.shape[2], dtype=torch.bool), selection)


def judge(results: Results) -> Verdict:
    def norms(condition: str, *what: str) -> list[float]:
        found = [results.over_seeds(condition, one) for one in what]
        return [max(values) for values in zip(*found, strict=True)]

    hard = [
        Effect(
            f"{one}: the gradient at queries and keys is",
            norms(one, "queries", "keys"),
            below=NOTHING,
        )
        for one in (EXACT, NEAREST, BEST)
    ]
    return conclude(
        *hard,
        Effect("exact match: random queries find a key, of all", norms(EXACT, "found"), below=0.01),
        Effect("nearest key: the gradient at values is", norms(NEAREST, "values"), above=NOTHING),
        Effect("softmax: the gradient at queries is", norms(SOFT, "queries"), above=NOTHING),
        Effect("softmax: the gradient at keys is", norms(SOFT, "keys"), above=NOTHING),
    )


def plot(results: Results) -> list[Chart]:
    names = (EXACT, NEAREST, BEST, SOFT)
    return [
        BarChart(f"gradient at {what}", names, [results.over_seeds(one, what) for one in names])
        for what in ("queries", "keys", "values")
    ]


CLAIM = Claim(
    name="hard-attention",
    sentence="Picking one key, by exact match, as the nearest one or by the best score, gives "
    "queries and keys no gradient to learn from; a soft mixture of all values does.",
    source="L0 §2.2.1 (ideas -1, 0 and 1); L1, Attention; L4 §2(c)",
    setup="Random queries look among random keys, the context is compared with a random target, "
    "and the squared distance is sent back through the attention. Measured: the norm of its "
    "gradient at queries, keys and values.",
    confirms="With every pick the gradient at queries and keys is zero, exact match finds nothing, "
    "the nearest key still gives its value a gradient, and the softmax gives all three one.",
    refutes="A pick gives queries or keys a gradient, or the softmax gives them none.",
    conditions=(EXACT, NEAREST, BEST, SOFT),
    sizes={
        "tiny": Settings(rows=2, keys=4, width=8),
        "small": Settings(rows=200, keys=16, width=64),
        "full": Settings(rows=2_000, keys=64, width=512),
    },
    measure=measure,
    judge=judge,
    plot=plot,
    columns=(
        Column("queries", "gradient at queries", ".3g"),
        Column("keys", "gradient at keys", ".3g"),
        Column("values", "gradient at values", ".3g"),
        Column("found", "weight in all", ".2f"),
    ),
)
