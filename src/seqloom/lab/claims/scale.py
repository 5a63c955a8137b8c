"""Dividing q · k by √d keeps the softmax soft; by 1 it saturates; by d no key can win."""

from dataclasses import dataclass
from typing import Literal

import torch

from seqloom.lab.claim import Claim, Column, Trial
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.nn.attention import DotScore, weigh
from seqloom.viz.chart import Chart, LineChart, Series

Scale = Literal["one", "sqrt", "width"]
SCALES: dict[str, Scale] = {"1": "one", "√d": "sqrt", "d": "width"}
WIDTHS = (4, 16, 64, 256, 1024)
KEYS = 16
WIDEST = WIDTHS[-1]


@dataclass(frozen=True)
class Settings:
    queries: int


def measure(trial: Trial[Settings]) -> Numbers:
    """Random queries among random keys of each width d, and then a key that is the query itself.

    largest at d: the largest weight among random keys
    slope at d:   what is left of the gradient of the softmax, Σ α (1 - α), against even weights
    matched at d: the weight of the key that equals the query
    """
    generator = torch.Generator().manual_seed(trial.seed)
    numbers: dict[str, float] = {}
    for width in WIDTHS:
        queries = torch.randn(trial.settings.queries, 1, 1, width, generator=generator)  # (B,1,1,d)
        keys = torch.randn(trial.settings.queries, 1, KEYS, width, generator=generator)  # (B,1,S,d)
        score = DotScore(SCALES[trial.condition], width)
        seen = torch.ones(1, 1, 1, KEYS, dtype=torch.bool)
        weights = weigh(score(queries, keys), seen, "softmax")  # (B, 1, 1, S)
        numbers[f"largest at {width}"] = weights.amax(-1).mean().item()
        slope = (weights * (1 - weights)).sum(-1).mean().item()
        numbers[f"slope at {width}"] = slope / (1 - 1 / KEYS)
        keys[:, :, 0] = queries[:, :, 0]
        matched = weigh(score(queries, keys), seen, "softmax")
        numbers[f"matched at {width}"] = matched[..., 0].mean().item()
    return numbers


def judge(results: Results) -> Verdict:
    widest, narrowest = f"at {WIDEST}", f"at {WIDTHS[0]}"

    def slope(condition: str, where: str) -> list[float]:
        return results.over_seeds(condition, f"slope {where}")

    def matched(condition: str) -> list[float]:
        return results.over_seeds(condition, f"matched {widest}")

    kept = [b / a for a, b in zip(slope("√d", narrowest), slope("√d", widest), strict=True)]
    lost = [b / a for a, b in zip(slope("1", narrowest), slope("1", widest), strict=True)]
    most = f"{WIDEST} numbers"
    return conclude(
        Effect(f"divided by 1, keys of {most} leave of the gradient at d = 4", lost, below=0.5),
        Effect(f"divided by √d, keys of {most} leave of it", kept, above=0.5),
        Effect(
            "divided by √d, a key that equals the query gets a weight of", matched("√d"), above=0.5
        ),
        Effect("divided by d, it gets a weight of", matched("d"), below=0.5),
    )


def plot(results: Results) -> list[Chart]:
    def lines(what: str, label: str) -> LineChart:
        names = [f"{what} at {width}" for width in WIDTHS]
        series = [Series(f"divided by {one}", WIDTHS, results.curve(one, names)) for one in SCALES]
        return LineChart("width d of queries and keys", label, series, logarithmic_x=True)

    return [
        lines("slope", "gradient of the softmax, of its most"),
        lines("matched", "weight of the key that equals the query"),
    ]


CLAIM = Claim(
    name="scale",
    sentence="Dividing q · k by √d keeps the softmax soft at every width; dividing by nothing "
    "saturates it as d grows; dividing by d caps the scores, so that no key can win the weight.",
    source="L0 §2.3 (why √d and not d); L1, attention variants",
    setup="Random queries meet 16 random keys with entries of unit variance, at widths d from 4 to "
    "1024, under the dot score of seqloom with each divisor. Measured: how much of the softmax's "
    "gradient is left, Σ α (1 - α) against that of even weights; and the weight of a key that "
    "equals the query.",
    confirms="At d = 1024 the softmax divided by 1 has less than half of the gradient it had at "
    "d = 4, the one divided by √d more than half; a key that equals the query gets most of the "
    "weight under √d and less than half under d.",
    refutes="One of these is the other way round with every seed.",
    conditions=tuple(SCALES),
    sizes={"tiny": Settings(20), "small": Settings(500), "full": Settings(20_000)},
    measure=measure,
    judge=judge,
    plot=plot,
    columns=(
        Column("largest at 4", "largest weight, d = 4", ".3f"),
        Column(f"largest at {WIDEST}", f"largest weight, d = {WIDEST}", ".3f"),
        Column(f"slope at {WIDEST}", f"gradient left, d = {WIDEST}", ".1%"),
        Column(f"matched at {WIDEST}", f"weight of the match, d = {WIDEST}", ".1%"),
    ),
)
