"""Without attention accuracy falls with length; with it, it does not."""

from seqloom.config.schema.recipe import RunConfig
from seqloom.lab.claim import Claim, Figure, Published, Trial
from seqloom.lab.copiers import (
    COLUMNS,
    LENGTHS,
    NAMES,
    NO_ATTENTION,
    CopierSettings,
    copied,
    copier,
)
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.viz.chart import Chart, LineChart, Series

PLAIN, LOOKING = "fixed vector", "attention"
WAY = f"from {LENGTHS[0]} to {LENGTHS[-1]} letters"


def configure(trial: Trial[CopierSettings]) -> RunConfig:
    """A GRU copies strings of letters of all lengths."""
    looking = {"score": {"kind": "dot"}, "projection": "linear"}
    attention = NO_ATTENTION if trial.condition == PLAIN else looking
    return copier(trial, {"handover": "whole", "attention": attention}, batch_tokens=2_048)


def measure(trial: Trial[CopierSettings]) -> Numbers:
    return copied(trial, configure(trial))


def judge(results: Results) -> Verdict:
    plain, looking = (
        results.between((one, NAMES[0]), (one, NAMES[-1])) for one in (PLAIN, LOOKING)
    )
    return conclude(
        Effect(f"without attention, {WAY} accuracy falls by", plain, form=".1%"),
        Effect(
            f"at {LENGTHS[-1]} letters, attention is ahead by",
            results.difference(NAMES[-1], LOOKING, PLAIN),
            form=".1%",
        ),
        Effect(
            "half of that is more than attention loses on the way, by",
            [one / 2 - other for one, other in zip(plain, looking, strict=True)],
            form=".1%",
        ),
    )


def plot(results: Results) -> list[Chart]:
    series = [Series(one, LENGTHS, results.curve(one, NAMES)) for one in (PLAIN, LOOKING)]
    return [LineChart("letters to copy", "share of right letters", series)]


CLAIM = Claim(
    name="bottleneck",
    sentence="A single vector between encoder and decoder is a bottleneck: accuracy falls as "
    "sequences grow. With attention it does not.",
    source="L1, The bottleneck problem; L2, Enhancing the above with attention; L0 §2.1",
    setup="A bidirectional GRU reads a string of letters and another writes it again. The two "
    "conditions differ in nothing but attention; both train for the same number of steps on "
    "strings of 1 to 20 letters. Tested on unseen strings of each length, by greedy search.",
    confirms="Without attention the share of right letters falls from the shortest to the longest "
    "strings; with attention it is higher at the longest, and falls less than half as much.",
    refutes="One of these is the other way round with every seed.",
    conditions=(PLAIN, LOOKING),
    sizes={
        "tiny": CopierSettings(examples=60, steps=3, width=8, tests=2),
        "small": CopierSettings(examples=10_000, steps=300, width=64, tests=200),
        "full": CopierSettings(examples=200_000, steps=6_000, width=256, tests=1_000),
    },
    measure=measure,
    judge=judge,
    plot=plot,
    columns=COLUMNS,
    published=(
        Published(
            where="Bahdanau et al. 2015, table 1",
            what="BLEU, English to French, models trained on sentences of up to 50 words",
            figures=(
                Figure("RNNencdec-50", 17.82, PLAIN, NAMES[-1]),
                Figure("RNNsearch-50", 26.75, LOOKING, NAMES[-1]),
            ),
        ),
    ),
)
