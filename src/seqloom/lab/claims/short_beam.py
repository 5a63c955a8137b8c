"""Beam search that sums log-probabilities prefers short outputs; divided by length it does not."""

from seqloom.config.schema.decoding import BeamConfig
from seqloom.lab.claim import Claim, Column, Trial
from seqloom.lab.experiment import trained
from seqloom.lab.results import Numbers, Results
from seqloom.lab.translators import (
    TRANSLATOR_SIZES,
    TranslatorSettings,
    translator,
    unseen_sentences,
)
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.metrics.bleu import bleu
from seqloom.viz.chart import Chart, LineChart, Series

SUM, MEAN = "sum of log p", "divided by length"
WIDTHS = (1, 2, 5, 10, 20)
LONG = [f"length at {width}" for width in WIDTHS]
GOOD = [f"BLEU at {width}" for width in WIDTHS]
USUAL = WIDTHS.index(5)


def measure(trial: Trial[TranslatorSettings]) -> Numbers:
    """Words put out for each word of the references, and BLEU, at each width of the beam."""
    run = trained(trial, translator(trial.settings, trial.seed))
    sentences = unseen_sentences(run, trial.settings.sentences)
    references = [one.references for one in sentences]
    wanted = sum(len(one.target.split()) for one in sentences)
    exponent = 0.0 if trial.condition == SUM else 1.0
    numbers = {}
    for width, long, good in zip(WIDTHS, LONG, GOOD, strict=True):
        decoding = BeamConfig(width=width, length_exponent=exponent)
        found = run.translate([one.source for one in sentences], decoding=decoding, attention=False)
        numbers[long] = sum(len(one.text.split()) for one in found) / wanted
        numbers[good] = bleu([one.text for one in found], references).value
    return numbers


def judge(results: Results) -> Verdict:
    unit = "words for each word of a reference"
    costs = [results.between((one, GOOD[USUAL]), (one, GOOD[-1])) for one in (SUM, MEAN)]
    return conclude(
        Effect(
            "with sums, a beam of 5 makes outputs shorter than a beam of 1, by",
            results.between((SUM, LONG[0]), (SUM, LONG[USUAL])),
            unit=unit,
        ),
        Effect(
            "with sums, a beam of 20 makes them shorter than a beam of 5, by",
            results.between((SUM, LONG[USUAL]), (SUM, LONG[-1])),
            unit=unit,
        ),
        Effect(
            "divided by length, a beam of 5 makes them longer than with sums, by",
            results.difference(LONG[USUAL], MEAN, SUM),
            unit=unit,
        ),
        Effect(
            "divided by length, going from a beam of 5 to one of 20 costs less than with sums, by",
            [one - other for one, other in zip(*costs, strict=True)],
            unit="BLEU",
        ),
    )


def plot(results: Results) -> list[Chart]:
    def lines(names: list[str], label: str) -> LineChart:
        series = [Series(one, WIDTHS, results.curve(one, names)) for one in (SUM, MEAN)]
        return LineChart("width of the beam", label, series, logarithmic_x=True, zero=False)

    return [lines(LONG, "words put out for each word of a reference"), lines(GOOD, "BLEU")]


CLAIM = Claim(
    name="short-beam",
    sentence="A beam that sums log-probabilities prefers short outputs, the more so the wider it "
    "is, for every word makes the sum smaller; dividing by the length makes up for much of it.",
    source="L1, Which sequence do we pick? (-4.5, -3.2, -7.2); L3, normalised log-likelihood",
    setup="A translator from German to English, trained on Tatoeba, is searched with beams of 1 to "
    "20, hypotheses compared by their sum of log-probabilities or by that sum over the length. "
    "Measured: words put out for each word of the references, and BLEU.",
    confirms="With sums, outputs become shorter from beam 1 to 5 and from 5 to 20; divided by the "
    "length they are longer, and a wide beam costs less BLEU.",
    refutes="One of these is the other way round with every seed.",
    conditions=(SUM, MEAN),
    sizes=TRANSLATOR_SIZES,
    measure=measure,
    judge=judge,
    plot=plot,
    columns=tuple(
        Column(name, label, form)
        for names, what, form in ((LONG, "length", ".3f"), (GOOD, "BLEU", ".1f"))
        for name, label in zip(names, [f"{what}, beam {width}" for width in WIDTHS], strict=True)
    ),
)
