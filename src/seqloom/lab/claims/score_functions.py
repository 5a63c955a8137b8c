"""Attention works with every score function; scores with learned parameters work better."""

import math

from seqloom.config.schema.recipe import RunConfig
from seqloom.lab.claim import Claim, PublishedFigure, PublishedResult, Trial
from seqloom.lab.models.trained_models import (
    ACCURACIES,
    COLUMNS,
    COPY_SIZES,
    LONGEST,
    NO_ATTENTION,
    CopySettings,
    Tables,
    copy_recipe,
    measure_copying,
    plot_copying,
)
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.viz.chart import Chart

NONE = "no attention"
DOT, SCALED, RBF = "dot", "scaled dot", "RBF"
MULTIPLICATIVE, NONLINEAR, ADDITIVE = "multiplicative", "nonlinear", "additive"
FIXED = (DOT, SCALED, RBF)
LEARNED = (MULTIPLICATIVE, NONLINEAR, ADDITIVE)
MAX_DIFFERENCE = 0.1
"""Two score functions count as equally good if their accuracies differ by less than this."""


def attention_tables(condition: str, width: int) -> Tables:
    """Return the attention options of a condition. width: width of the states"""
    tables: dict[str, Tables] = {
        NONE: NO_ATTENTION,
        DOT: {"score": {"kind": "dot", "scale": "one"}},
        SCALED: {"score": {"kind": "dot", "scale": "sqrt"}},
        # -γ‖q - k‖² contains the term 2γ q·k. With this γ, its factor 2γ is 1/√d.
        RBF: {"score": {"kind": "rbf", "gamma": 0.5 / math.sqrt(width)}},
        MULTIPLICATIVE: {"score": {"kind": "bilinear"}},
        NONLINEAR: {"score": {"kind": "dot", "scale": "one"}, "projection": "sigmoid"},
        ADDITIVE: {"score": {"kind": "additive", "width": width}},
    }
    return tables[condition]


def configure(trial: Trial[CopySettings]) -> RunConfig:
    attention = attention_tables(trial.condition, trial.settings.width)
    return copy_recipe(trial, {"initial_state": "copy", "attention": attention})


def measure(trial: Trial[CopySettings]) -> Numbers:
    return measure_copying(trial, configure(trial))


def judge(results: Results) -> Verdict:
    name, length = ACCURACIES[-1], f"at {LONGEST} letters"
    accuracies = [results.over_seeds(condition, name) for condition in (*FIXED, *LEARNED)]
    worst = [min(values) for values in zip(*accuracies, strict=True)]
    without = results.over_seeds(NONE, name)
    return conclude(
        Effect(
            f"{length}, the worst score function is better than no attention by",
            [first - second for first, second in zip(worst, without, strict=True)],
            format_spec=".1%",
        ),
        *(
            Effect(
                f"{length}, the {learned} score is better than the dot product by",
                results.difference(name, learned, DOT),
                format_spec=".1%",
            )
            for learned in LEARNED
        ),
        Effect(
            f"{length}, RBF and the dot product divided by √d differ by",
            [abs(value) for value in results.difference(name, RBF, SCALED)],
            below=MAX_DIFFERENCE,
            format_spec=".1%",
        ),
    )


def plot(results: Results) -> list[Chart]:
    scores = (*FIXED, *LEARNED)
    return plot_copying(results, scores, (NONE, *scores))


CLAIM = Claim(
    name="score-functions",
    sentence="Attention works with every score function. Scores with learned parameters are better "
    "than the plain dot product of the states; the radial basis function and the scaled dot product "
    "are similar and perform alike.",
    source="L1, Attention variants (identity, linear multiplicative, learned keys and queries); "
    "L0 §2.3 (inner product or RBF); L2, Calculating the attention weights (a small network)",
    setup="A bidirectional GRU encoder reads strings of 1 to 20 letters and a GRU decoder copies "
    "them. The conditions differ in the score of query and key: h·s, h·s/√d, exp(-γ‖h - s‖²), "
    "h·W s, σ(W h + b)·σ(W s + b), v·tanh(W h + W s), or no attention. All train for the same "
    "number of steps, also those with more parameters to learn. Tested on unseen strings by greedy "
    "search.",
    confirms="At 20 letters the worst score is better than no attention; multiplicative, nonlinear "
    "and additive are each better than the dot product; RBF and scaled dot differ by less than 10 "
    "percentage points.",
    refutes="The opposite of one of these statements holds with every seed.",
    conditions=(NONE, *FIXED, *LEARNED),
    sizes=COPY_SIZES,
    measure=measure,
    judge=judge,
    plot=plot,
    columns=COLUMNS,
    published=(
        PublishedResult(
            where="Britz et al. 2017, table 5",
            what="BLEU, English to German, keys and queries of width 512",
            figures=(
                PublishedFigure("no attention", 9.98, NONE, ACCURACIES[-1]),
                PublishedFigure("multiplicative", 21.78, MULTIPLICATIVE, ACCURACIES[-1]),
                PublishedFigure("additive", 22.47, ADDITIVE, ACCURACIES[-1]),
            ),
        ),
        PublishedResult(
            where="Luong et al. 2015, table 4",
            what="BLEU, English to German, global attention",
            figures=(
                PublishedFigure("dot", 18.6, DOT, ACCURACIES[-1]),
                PublishedFigure("general (multiplicative)", 17.3, MULTIPLICATIVE, ACCURACIES[-1]),
            ),
        ),
    ),
)
