"""Tests the claim: the context vector helps at every place where the decoder can use it."""

from seqloom.config.schema.recipe import RunConfig
from seqloom.lab.claim import Trial, declare_claim
from seqloom.lab.models.trained_models import (
    ACCURACIES,
    COLUMNS,
    COPY_SIZES,
    LONGEST,
    NO_ATTENTION,
    CopySettings,
    copy_recipe,
    measure_copying,
    plot_copying,
)
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.viz.chart import Chart

NONE = "no attention"
USES: dict[str, tuple[str, ...]] = {
    "input": ("input",),
    "readout": ("readout",),
    "next layer": ("layer",),
    "new state": ("state",),
    "input and readout": ("input", "readout"),
}


def configure(trial: Trial[CopySettings]) -> RunConfig:
    """Return the recipe of a GRU that copies strings of letters.

    All decoders have two layers, because one condition uses the context vector as an input of the
    second layer.
    """
    attention = {"score": {"kind": "dot"}, "projection": "linear"}
    if trial.condition == NONE:
        return copy_recipe(trial, {"layers": 2, "attention": NO_ATTENTION})
    uses = USES[trial.condition]
    return copy_recipe(trial, {"layers": 2, "attention": attention, "context": uses})


def measure(trial: Trial[CopySettings]) -> Numbers:
    return measure_copying(trial, configure(trial))


def judge(results: Results) -> Verdict:
    return conclude(
        *(
            Effect(
                f"at {LONGEST} letters, the context as {use} is better than no attention by",
                results.difference(ACCURACIES[-1], use, NONE),
                format_spec=".1%",
            )
            for use in USES
        )
    )


def plot(results: Results) -> list[Chart]:
    conditions = (NONE, *USES)
    return plot_copying(results, conditions, conditions)


CLAIM = declare_claim(
    "context-uses",
    conditions=(NONE, *USES),
    sizes=COPY_SIZES,
    measure=measure,
    judge=judge,
    plot=plot,
    columns=COLUMNS,
)
