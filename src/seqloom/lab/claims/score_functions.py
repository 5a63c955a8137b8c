"""Every score function learns where to look; what keys and queries are is better learned."""

import math

from seqloom.config.schema.recipe import RunConfig
from seqloom.lab.claim import Claim, Figure, Published, Trial
from seqloom.lab.copiers import (
    COLUMNS,
    COPIER_SIZES,
    LONGEST,
    NAMES,
    NO_ATTENTION,
    CopierSettings,
    copied,
    copier,
    drawn,
)
from seqloom.lab.experiment import Tables
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.viz.chart import Chart

NONE = "no attention"
DOT, SCALED, RBF = "dot", "scaled dot", "RBF"
MULTIPLICATIVE, NONLINEAR, ADDITIVE = "multiplicative", "nonlinear", "additive"
IDENTITY = (DOT, SCALED, RBF)
LEARNED = (MULTIPLICATIVE, NONLINEAR, ADDITIVE)
NEAR = 0.1
"""Two scores that are not further apart than this are as good as each other."""


def attention_of(condition: str, width: int) -> Tables:
    """The switches of a score, between states that are `width` wide."""
    tables: dict[str, Tables] = {
        NONE: NO_ATTENTION,
        DOT: {"score": {"kind": "dot", "scale": "one"}},
        SCALED: {"score": {"kind": "dot", "scale": "sqrt"}},
        # -γ‖q - k‖² holds 2γ q·k: this γ gives q·k the weight that it has when divided by √d.
        RBF: {"score": {"kind": "rbf", "gamma": 0.5 / math.sqrt(width)}},
        MULTIPLICATIVE: {"score": {"kind": "bilinear"}},
        NONLINEAR: {"score": {"kind": "dot", "scale": "one"}, "projection": "sigmoid"},
        ADDITIVE: {"score": {"kind": "additive", "width": width}},
    }
    return tables[condition]


def configure(trial: Trial[CopierSettings]) -> RunConfig:
    attention = attention_of(trial.condition, trial.settings.width)
    return copier(trial, {"handover": "whole", "attention": attention})


def measure(trial: Trial[CopierSettings]) -> Numbers:
    return copied(trial, configure(trial))


def judge(results: Results) -> Verdict:
    name, where = NAMES[-1], f"at {LONGEST} letters"
    every = [results.over_seeds(one, name) for one in (*IDENTITY, *LEARNED)]
    worst = [min(values) for values in zip(*every, strict=True)]
    nothing = results.over_seeds(NONE, name)
    return conclude(
        Effect(
            f"{where}, the worst score function is ahead of no attention by",
            [one - other for one, other in zip(worst, nothing, strict=True)],
            form=".1%",
        ),
        *(
            Effect(
                f"{where}, the {learned} score is ahead of the dot product by",
                results.difference(name, learned, DOT),
                form=".1%",
            )
            for learned in LEARNED
        ),
        Effect(
            f"{where}, RBF and the dot product divided by √d are apart by",
            [abs(value) for value in results.difference(name, RBF, SCALED)],
            below=NEAR,
            form=".1%",
        ),
    )


def plot(results: Results) -> list[Chart]:
    scores = (*IDENTITY, *LEARNED)
    return drawn(results, scores, (NONE, *scores))


CLAIM = Claim(
    name="score-functions",
    sentence="Attention learns where to look with every score function. Scores that learn what is "
    "compared get further than the dot product of the states as they are; the radial basis function "
    "and the scaled dot product are of one kind and do alike.",
    source="L1, Attention variants (identity, linear multiplicative, learned keys and queries); "
    "L0 §2.3 (inner product or RBF); L2, Calculating the attention weights (a small network)",
    setup="A bidirectional GRU reads strings of 1 to 20 letters and another copies them. The "
    "conditions differ in how query and key are compared: h·s, h·s/√d, exp(-γ‖h - s‖²), h·W s, "
    "σ(W h + b)·σ(W s + b), v·tanh(W h + W s), or not at all. Same number of steps for all, "
    "so a score with more to learn has no more time for it. Tested on unseen strings by greedy "
    "search.",
    confirms="At 20 letters the worst score is ahead of no attention; multiplicative, nonlinear and "
    "additive are each ahead of the dot product; RBF and scaled dot are less than 10 percentage "
    "points apart.",
    refutes="One of these is the other way round with every seed.",
    conditions=(NONE, *IDENTITY, *LEARNED),
    sizes=COPIER_SIZES,
    measure=measure,
    judge=judge,
    plot=plot,
    columns=COLUMNS,
    published=(
        Published(
            where="Britz et al. 2017, table 5",
            what="BLEU, English to German, keys and queries of 512 numbers",
            figures=(
                Figure("no attention", 9.98, NONE, NAMES[-1]),
                Figure("multiplicative", 21.78, MULTIPLICATIVE, NAMES[-1]),
                Figure("additive", 22.47, ADDITIVE, NAMES[-1]),
            ),
        ),
        Published(
            where="Luong et al. 2015, table 4",
            what="BLEU, English to German, global attention",
            figures=(
                Figure("dot", 18.6, DOT, NAMES[-1]),
                Figure("general (multiplicative)", 17.3, MULTIPLICATIVE, NAMES[-1]),
            ),
        ),
    ),
)
