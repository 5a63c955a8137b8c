"""A wider beam finds likelier and better outputs, and most of it at width 2."""

from seqloom.config.schema.decoding import BeamConfig
from seqloom.lab.claim import Claim, Column, Figure, Published, Trial
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

WIDTHS = {f"beam {width}": width for width in (1, 2, 5, 12)}
GREEDY, NARROW, WIDE = "beam 1", "beam 2", "beam 12"
GOOD, LIKELY = "BLEU", "log p a piece"


def measure(trial: Trial[TranslatorSettings]) -> Numbers:
    """BLEU, and the mean log-probability of a piece: what the search looks for."""
    run = trained(trial, translator(trial.settings, trial.seed))
    sentences = unseen_sentences(run, trial.settings.sentences)
    beam = BeamConfig(width=WIDTHS[trial.condition])
    found = run.translate([one.source for one in sentences], decoding=beam, attention=False)
    return {
        GOOD: bleu([one.text for one in found], [one.references for one in sentences]).value,
        LIKELY: sum(one.score for one in found) / len(found),
    }


def judge(results: Results) -> Verdict:
    first = results.difference(GOOD, NARROW, GREEDY)
    second = results.difference(GOOD, WIDE, NARROW)
    return conclude(
        Effect(
            "a beam of 2 finds likelier outputs than a beam of 1, log p a piece higher by",
            results.difference(LIKELY, NARROW, GREEDY),
        ),
        Effect(
            "a beam of 12 finds likelier outputs than a beam of 2, higher by",
            results.difference(LIKELY, WIDE, NARROW),
        ),
        Effect("a beam of 2 is ahead of a beam of 1 by", first, unit=GOOD),
        Effect(
            "from 1 to 2 more is gained than from 2 to 12, by",
            [one - other for one, other in zip(first, second, strict=True)],
            unit=GOOD,
        ),
    )


def plot(results: Results) -> list[Chart]:
    def line(name: str) -> LineChart:
        values = [results.over_seeds(one, name) for one in WIDTHS]
        series = [Series("beam search", list(WIDTHS.values()), values)]
        return LineChart("width of the beam", name, series, logarithmic_x=True, zero=False)

    return [line(GOOD), line(LIKELY)]


CLAIM = Claim(
    name="beam-width",
    sentence="Keeping several beginnings finds likelier outputs than taking the likeliest word at "
    "each step, and better ones; a beam of 2 already brings most of it.",
    source="L1, Beam search intuition and example; L3, Basic translator: inference (top-k)",
    setup="A translator from German to English, trained on Tatoeba, is searched with beams of 1 to "
    "12, hypotheses compared by their log-probability over their length. Measured: BLEU, and the "
    "mean log-probability of a piece.",
    confirms="Outputs become likelier from beam 1 to 2 and from 2 to 12; BLEU rises from 1 to 2, by "
    "more than from 2 to 12.",
    refutes="One of these is the other way round with every seed.",
    conditions=tuple(WIDTHS),
    sizes=TRANSLATOR_SIZES,
    measure=measure,
    judge=judge,
    plot=plot,
    columns=(Column(GOOD, GOOD, ".2f"), Column(LIKELY, LIKELY, ".4f")),
    published=(
        Published(
            where="Sutskever et al. 2014, table 1",
            what="BLEU, English to French, five reversed LSTMs together",
            figures=(
                Figure("beam of 1", 33.0, GREEDY, GOOD),
                Figure("beam of 2", 34.5, NARROW, GOOD),
                Figure("beam of 12", 34.81, WIDE, GOOD),
            ),
        ),
    ),
)
