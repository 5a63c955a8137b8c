"""Tests the claim: if q · k is divided by √d, the softmax neither saturates nor becomes uniform.

d is the width of q and k. Without division the softmax saturates. With division by d it stays
nearly uniform.
"""

from dataclasses import dataclass
from typing import Literal

import torch

from seqloom.lab.charts import condition_lines
from seqloom.lab.claim import Trial, declare_claim
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.nn.attention import DotScore, attention_weights
from seqloom.viz.chart import Chart

Scale = Literal["one", "sqrt", "width"]
SCALES: dict[str, Scale] = {"1": "one", "√d": "sqrt", "d": "width"}
WIDTHS = (4, 16, 64, 256, 1024)
KEYS = 16
NARROWEST, WIDEST = WIDTHS[0], WIDTHS[-1]


@dataclass(frozen=True)
class ScaleSettings:
    queries: int


def measure(trial: Trial[ScaleSettings]) -> Numbers:
    """Measure the attention weights α of random queries over random keys, for each width d.

    Returns three values per width, each averaged over the queries:

    largest at d: the largest weight
    slope at d:   Σ α (1 - α), divided by the same sum for uniform weights. It measures how large
                  the gradient of the softmax is.
    matched at d: the weight of a key that equals the query
    """
    generator = torch.Generator().manual_seed(trial.seed)
    numbers: dict[str, float] = {}
    for width in WIDTHS:
        queries = torch.randn(trial.settings.queries, 1, 1, width, generator=generator)  # (B,1,1,d)
        keys = torch.randn(trial.settings.queries, 1, KEYS, width, generator=generator)  # (B,1,S,d)
        score = DotScore(SCALES[trial.condition], width)
        mask = torch.ones(1, 1, 1, KEYS, dtype=torch.bool)
        weights = attention_weights(score(queries, keys), mask, "softmax")  # (B, 1, 1, S)
        numbers[f"largest at {width}"] = weights.amax(-1).mean().item()
        slope = (weights * (1 - weights)).sum(-1).mean().item()
        numbers[f"slope at {width}"] = slope / (1 - 1 / KEYS)
        keys[:, :, 0] = queries[:, :, 0]
        matched = attention_weights(score(queries, keys), mask, "softmax")
        numbers[f"matched at {width}"] = matched[..., 0].mean().item()
    return numbers


def judge(results: Results) -> Verdict:
    def remaining_slope(condition: str) -> list[float]:
        """Return one ratio per seed: the softmax slope at the largest width, divided by the slope
        at the smallest width."""
        ends = [(condition, f"slope at {width}") for width in (WIDEST, NARROWEST)]
        return results.ratio(*ends)

    def matched(condition: str) -> list[float]:
        return results.over_seeds(condition, f"matched at {WIDEST}")

    remains = f"the gradient at d = {WIDEST}, relative to d = {NARROWEST}, is"
    match = "the weight of a key that equals the query is"
    return conclude(
        Effect(f"divided by 1, {remains}", remaining_slope("1"), below=0.5),
        Effect(f"divided by √d, {remains}", remaining_slope("√d"), above=0.5),
        Effect(f"divided by √d, {match}", matched("√d"), above=0.5),
        Effect(f"divided by d, {match}", matched("d"), below=0.5),
    )


def plot(results: Results) -> list[Chart]:
    labels = {
        "slope": "gradient of the softmax, relative to its maximum",
        "matched": "weight of the key that equals the query",
    }
    return [
        condition_lines(
            results,
            ("width d of queries and keys", label),
            {divisor: f"divided by {divisor}" for divisor in SCALES},
            WIDTHS,
            [f"{quantity} at {width}" for width in WIDTHS],
            logarithmic_x=True,
        )
        for quantity, label in labels.items()
    ]


CLAIM = declare_claim(
    "scale",
    conditions=tuple(SCALES),
    sizes=ScaleSettings,
    measure=measure,
    judge=judge,
    plot=plot,
)
