"""Tests four claims about the score functions of attention.

1. With every score function, a model with attention is better than one without attention.
2. The radial basis function (RBF) and the dot product rank keys of unit length alike.
3. One learned matrix between query and key is as good as a matrix for the query and a matrix for
   the key.
4. The dot product is as good as any other score function if two layers with activations first
   transform the query and the key.
"""

import math

import torch
from torch.nn.functional import normalize

from seqloom.config.schema.recipe import RunConfig
from seqloom.lab.claim import Trial, declare_claim
from seqloom.lab.models.trained_models import (
    ACCURACIES,
    COPY_SIZES,
    LONGEST,
    NO_ATTENTION,
    CopySettings,
    Tables,
    copy_recipe,
    measure_copying,
    plot_copying,
)
from seqloom.lab.results import Numbers, Results, minus
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.nn.attention import DotScore, RbfScore
from seqloom.viz.chart import Chart

NONE = "no attention"
DOT, SCALED, RBF = "dot", "scaled dot", "RBF"
ONE_MATRIX, TWO_MATRICES = "one matrix", "two matrices"
ACTIVATION, ADDITIVE = "one layer with activation", "additive"
SCORES = (DOT, SCALED, RBF, ONE_MATRIX, TWO_MATRICES, ACTIVATION, ADDITIVE)
MAX_DIFFERENCE = 0.1
"""Two score functions count as equally good if their accuracies differ by less than this."""
UNIT_RANKING, RAW_RANKING = "same ranking, unit length", "same ranking, any length"
KEYS, QUERIES = 16, 1_000
"""Numbers of random keys and queries whose rankings are compared."""


def attention_tables(condition: str, width: int) -> Tables:
    """Return the attention settings for a condition of the experiment.

    condition: name of a score function, for example "scaled dot", or "no attention"
    width:     width of the encoder states and of the decoder states
    """
    tables: dict[str, Tables] = {
        NONE: NO_ATTENTION,
        DOT: {"score": {"kind": "dot", "scale": "one"}},
        SCALED: {"score": {"kind": "dot", "scale": "sqrt"}},
        # -γ‖q - k‖² contains the term 2γ q·k. With this γ, its factor 2γ is 1/√d.
        RBF: {"score": {"kind": "rbf", "gamma": 0.5 / math.sqrt(width)}},
        ONE_MATRIX: {"score": {"kind": "bilinear"}},
        TWO_MATRICES: {"score": {"kind": "dot"}, "projection": "linear"},
        ACTIVATION: {"score": {"kind": "dot", "scale": "one"}, "projection": "sigmoid"},
        ADDITIVE: {"score": {"kind": "additive", "width": width}},
    }
    return tables[condition]


def configure(trial: Trial[CopySettings]) -> RunConfig:
    attention = attention_tables(trial.condition, trial.settings.width)
    return copy_recipe(trial, {"initial_state": "copy", "attention": attention})


def measure(trial: Trial[CopySettings]) -> Numbers:
    """Measure how accurately the trained model copies strings.

    For the condition "RBF", also measure how often RBF and the dot product rank keys alike.
    """
    numbers = dict(measure_copying(trial, configure(trial)))
    if trial.condition == RBF:
        width = trial.settings.width
        numbers[UNIT_RANKING] = same_ranking(width, trial.seed, unit_length=True)
        numbers[RAW_RANKING] = same_ranking(width, trial.seed, unit_length=False)
    return numbers


def same_ranking(width: int, seed: int, *, unit_length: bool) -> float:
    """Return the fraction of random queries for which RBF and dot product rank all keys alike.

    unit_length: True to normalise queries and keys to length 1
    """
    generator = torch.Generator().manual_seed(seed)
    queries, keys = (
        torch.randn(1, count, width, generator=generator, dtype=torch.float64)
        for count in (QUERIES, KEYS)
    )
    if unit_length:
        queries, keys = normalize(queries, dim=-1), normalize(keys, dim=-1)
    dot, rbf = (
        score(queries, keys).argsort(dim=-1)  # (1, QUERIES, KEYS)
        for score in (DotScore("sqrt", width), RbfScore(1.0))
    )
    return (dot == rbf).all(-1).double().mean().item()


def judge(results: Results) -> Verdict:
    name, length = ACCURACIES[-1], f"at {LONGEST} letters"
    by_seed = list(zip(*(results.over_seeds(condition, name) for condition in SCORES), strict=True))
    activation = results.over_seeds(ACTIVATION, name)

    def difference(first: str, second: str) -> list[float]:
        return [abs(value) for value in results.difference(name, first, second)]

    return conclude(
        Effect(
            f"{length}, the worst score function is better than no attention by",
            minus([min(scores) for scores in by_seed], results.over_seeds(NONE, name)),
            format_spec=".1%",
        ),
        Effect(
            "RBF and the dot product rank keys of unit length alike for",
            results.over_seeds(RBF, UNIT_RANKING),
            above=0.99,
            format_spec=".1%",
            unit="of the queries",
        ),
        Effect(
            f"{length}, RBF and the dot product divided by √d differ by",
            difference(RBF, SCALED),
            below=MAX_DIFFERENCE,
            format_spec=".1%",
        ),
        Effect(
            f"{length}, one learned matrix and two differ by",
            difference(ONE_MATRIX, TWO_MATRICES),
            below=MAX_DIFFERENCE,
            format_spec=".1%",
        ),
        Effect(
            f"{length}, one layer with an activation is worse than the best score function by",
            minus([max(scores) for scores in by_seed], activation),
            below=MAX_DIFFERENCE,
            format_spec=".1%",
        ),
    )


def plot(results: Results) -> list[Chart]:
    # Six lines have six different colours. The bars include RBF as well.
    lines = [condition for condition in SCORES if condition != RBF]
    return plot_copying(results, lines, (NONE, *SCORES))


CLAIM = declare_claim(
    "score-functions",
    conditions=(NONE, *SCORES),
    sizes=COPY_SIZES,
    measure=measure,
    judge=judge,
    plot=plot,
)
