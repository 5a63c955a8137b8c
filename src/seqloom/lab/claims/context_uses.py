"""Whatever receives the context vector, it is better than having none."""

from seqloom.config.schema.recipe import RunConfig
from seqloom.lab.claim import Claim, Trial
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


def configure(trial: Trial[CopierSettings]) -> RunConfig:
    """All have two layers in the decoder, because one of the uses lies between them."""
    attention = {"score": {"kind": "dot"}, "projection": "linear"}
    if trial.condition == NONE:
        return copier(trial, {"layers": 2, "attention": NO_ATTENTION})
    uses = USES[trial.condition]
    return copier(trial, {"layers": 2, "attention": attention, "context": uses})


def measure(trial: Trial[CopierSettings]) -> Numbers:
    return copied(trial, configure(trial))


def judge(results: Results) -> Verdict:
    return conclude(
        *(
            Effect(
                f"at {LONGEST} letters, with the context as {use} the lead over no attention is",
                results.difference(NAMES[-1], use, NONE),
                form=".1%",
            )
            for use in USES
        )
    )


def plot(results: Results) -> list[Chart]:
    every = (NONE, *USES)
    return drawn(results, every, every)


CLAIM = Claim(
    name="context-uses",
    sentence="The context vector can be put to use in various ways: in the input of the next step, "
    "in the readout, in the next recurrent layer, or in place of the state. Each of them helps.",
    source="L1, Attention (who receives it?) and Attention equations; L3, Attention: computing "
    "output (readout, or as a new state)",
    setup="A bidirectional GRU reads strings of 1 to 20 letters and one of two layers copies them. "
    "The conditions differ in where the context vector goes, and one has no attention. Same number "
    "of steps for all. Tested on unseen strings by greedy search.",
    confirms="At 20 letters every use has more right letters than the model without attention.",
    refutes="One of the uses has fewer with every seed.",
    conditions=(NONE, *USES),
    sizes=COPIER_SIZES,
    measure=measure,
    judge=judge,
    plot=plot,
    columns=COLUMNS,
)
