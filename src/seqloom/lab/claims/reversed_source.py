"""A model with nothing but a vector between encoder and decoder reads better in reverse."""

from dataclasses import dataclass
from typing import Literal

from seqloom.config.schema.decoding import GreedyConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.lab.claim import Claim, Column, Figure, Published, Trial
from seqloom.lab.experiment import (
    Tables,
    letters,
    recipe,
    right_letters,
    trained,
    training,
    unseen,
)
from seqloom.lab.results import Numbers, Results
from seqloom.lab.translators import BUNDLED, SUBWORDS
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.viz.chart import BarChart, Chart

FORWARD, REVERSED = "read forwards", "read in reverse"
LENGTHS = (4, 8, 12)
CORPUS = letters("copy", 1, LENGTHS[-1], symbols=10)


@dataclass(frozen=True)
class Settings:
    task: Literal["letters", "sentences"]
    examples: int
    """Strings of letters to learn from."""
    steps: int
    width: int
    rate: float


def configure(trial: Trial[Settings]) -> RunConfig:
    """A plain encoder-decoder; the conditions differ in the direction of the encoder alone."""
    settings = trial.settings
    direction = "forward" if trial.condition == FORWARD else "backward"
    sides: Tables = {
        "encoder": {"kind": "recurrent", "width": settings.width, "direction": direction},
        "decoder": {
            "kind": "recurrent",
            "width": settings.width,
            "handover": "whole",
            "attention": {"kind": "none"},
        },
    }
    if settings.task == "sentences":
        for side in sides.values():
            side["dropout"] = 0.3
        data, text = BUNDLED, SUBWORDS
    else:
        train = {**CORPUS, "examples": settings.examples, "seed": trial.seed}
        split = {**CORPUS, "examples": max(20, settings.examples // 20)}
        data = {"train": train, "dev": split, "test": split}
        text = {"tokenizer": {"kind": "characters"}}
    how = training(settings.steps, trial.seed, settings.rate)
    return recipe({"data": data, "text": text, "model": sides, "training": how})


def measure(trial: Trial[Settings]) -> Numbers:
    """Perplexity of the test split, and BLEU of sentences or the share of right letters."""
    run = trained(trial, configure(trial))
    report = run.evaluate("test", decoding=GreedyConfig())
    scores = {score.name.lower(): score.value for score in report.scores}
    numbers = {"perplexity": scores["perplexity"]}
    if trial.settings.task == "sentences":
        return {**numbers, "score": scores["bleu"]}
    for length in LENGTHS:
        pairs = unseen(CORPUS, length, max(2, trial.settings.examples // 50))
        found = run.translate([one.source for one in pairs], decoding=GreedyConfig())
        share = right_letters([one.text for one in found], [one.target for one in pairs])
        numbers[f"accuracy at {length}"] = share
    outputs, targets = report.outputs, [one.target for one in report.examples]
    return {**numbers, "score": 100 * right_letters(outputs, targets)}


def judge(results: Results) -> Verdict:
    return conclude(
        Effect(
            "read in reverse, the score is higher by",
            results.difference("score", REVERSED, FORWARD),
        ),
        Effect(
            "read in reverse, perplexity is lower by",
            results.difference("perplexity", FORWARD, REVERSED),
        ),
    )


def plot(results: Results) -> list[Chart]:
    ways = (FORWARD, REVERSED)
    return [
        BarChart(
            "BLEU of sentences, or right letters in percent",
            ways,
            [results.over_seeds(one, "score") for one in ways],
        ),
        BarChart(
            "perplexity of the test split",
            ways,
            [results.over_seeds(one, "perplexity") for one in ways],
        ),
    ]


CLAIM = Claim(
    name="reversed-source",
    sentence="A plain encoder-decoder learns better if the source is read in reverse: the first "
    "words read last are near the first words written.",
    source="L1, What if we condition on another sequence? (read in reverse, why?)",
    setup="A GRU reads, forwards or in reverse, and hands its last state to another, which writes; "
    "there is no attention. Small: strings of up to 12 letters are copied, and the score is the "
    "share of right letters in percent. Full: German to English sentences of Tatoeba, and the "
    "score is BLEU. Greedy search.",
    confirms="In reverse the score is higher and perplexity lower, with every seed.",
    refutes="The score is lower or perplexity higher in reverse, with every seed.",
    conditions=(FORWARD, REVERSED),
    sizes={
        "tiny": Settings("letters", examples=60, steps=3, width=8, rate=4e-3),
        "small": Settings("letters", examples=10_000, steps=300, width=64, rate=4e-3),
        "full": Settings("sentences", examples=0, steps=4_000, width=512, rate=1e-3),
    },
    measure=measure,
    judge=judge,
    plot=plot,
    columns=(
        Column("score", "score", ".1f"),
        Column("perplexity", "perplexity", ".2f"),
    ),
    published=(
        Published(
            where="Sutskever et al. 2014, §3.3",
            what="BLEU, English to French, LSTM of four layers",
            figures=(
                Figure("read forwards", 25.9, FORWARD, "score"),
                Figure("read in reverse", 30.6, REVERSED, "score"),
            ),
        ),
        Published(
            where="Sutskever et al. 2014, §3.3",
            what="Perplexity of the test set, English to French",
            figures=(
                Figure("read forwards", 5.8, FORWARD, "perplexity"),
                Figure("read in reverse", 4.7, REVERSED, "perplexity"),
            ),
        ),
    ),
)
