"""Tests the claim: without attention, accuracy falls for longer sources.

With attention, it does not fall.
"""

from seqloom.config.schema.recipe import RunConfig
from seqloom.lab.charts import condition_lines
from seqloom.lab.claim import Trial, declare_claim
from seqloom.lab.models.trained_models import (
    ACCURACIES,
    COLUMNS,
    LENGTHS,
    NO_ATTENTION,
    CopySettings,
    copy_recipe,
    measure_copying,
)
from seqloom.lab.results import Numbers, Results, minus
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.viz.chart import Chart

FIXED_VECTOR, ATTENTION = "fixed vector", "attention"
LENGTH_RANGE = f"from {LENGTHS[0]} to {LENGTHS[-1]} letters"


def configure(trial: Trial[CopySettings]) -> RunConfig:
    """Return the recipe of a GRU that copies strings of letters."""
    dot_product = {"score": {"kind": "dot"}, "projection": "linear"}
    attention = NO_ATTENTION if trial.condition == FIXED_VECTOR else dot_product
    return copy_recipe(trial, {"initial_state": "copy", "attention": attention}, batch_tokens=2_048)


def measure(trial: Trial[CopySettings]) -> Numbers:
    return measure_copying(trial, configure(trial))


def judge(results: Results) -> Verdict:
    fixed_loss, attention_loss = (
        results.between((condition, ACCURACIES[0]), (condition, ACCURACIES[-1]))
        for condition in (FIXED_VECTOR, ATTENTION)
    )
    return conclude(
        Effect(
            f"without attention, accuracy falls {LENGTH_RANGE} by", fixed_loss, format_spec=".1%"
        ),
        Effect(
            f"at {LENGTHS[-1]} letters, attention is more accurate by",
            results.difference(ACCURACIES[-1], ATTENTION, FIXED_VECTOR),
            format_spec=".1%",
        ),
        Effect(
            "half of the loss without attention exceeds the loss with attention by",
            minus([loss / 2 for loss in fixed_loss], attention_loss),
            format_spec=".1%",
        ),
    )


def plot(results: Results) -> list[Chart]:
    labels = ("letters to copy", "fraction of correct letters")
    return [condition_lines(results, labels, (FIXED_VECTOR, ATTENTION), LENGTHS, ACCURACIES)]


CLAIM = declare_claim(
    "bottleneck",
    conditions=(FIXED_VECTOR, ATTENTION),
    sizes=CopySettings,
    measure=measure,
    judge=judge,
    plot=plot,
    columns=COLUMNS,
)
