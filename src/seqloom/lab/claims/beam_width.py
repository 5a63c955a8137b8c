"""Tests two claims about beam search.

- Beam search finds more probable and better outputs than greedy search.
- A beam of width 2 already brings most of the gain.
"""

from seqloom.config.schema.decoding import BeamConfig
from seqloom.lab.charts import line_over_conditions
from seqloom.lab.claim import Trial, declare_claim
from seqloom.lab.models.trained_models import (
    TRANSLATION_SIZES,
    TranslationSettings,
    read_test_sentences,
    train_once,
    translate_alone,
    translation_recipe,
)
from seqloom.lab.results import Numbers, Results, minus
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.metrics.bleu import bleu
from seqloom.viz.chart import Chart

WIDTHS = {f"beam {width}": width for width in (1, 2, 5, 12)}
GREEDY, NARROW, WIDE = "beam 1", "beam 2", "beam 12"
BLEU, LOG_P = "BLEU", "log p per token"


def measure(trial: Trial[TranslationSettings]) -> Numbers:
    """Measure BLEU and the mean log-probability per token of the translated test sentences.

    Beam search looks for the output with the highest log-probability per token.
    """
    run = train_once(trial, translation_recipe(trial.settings, trial.seed))
    sentences = read_test_sentences(run, trial.settings.sentences)
    # The score is log p per token, and END is one of the tokens.
    beam = BeamConfig(width=WIDTHS[trial.condition], length_counts_end=True)
    outputs = translate_alone(run, [each.source for each in sentences], beam)
    references = [each.references for each in sentences]
    return {
        BLEU: bleu([output.text for output in outputs], references).value,
        LOG_P: sum(output.score for output in outputs) / len(outputs),
    }


def judge(results: Results) -> Verdict:
    first_gain = results.difference(BLEU, NARROW, GREEDY)
    second_gain = results.difference(BLEU, WIDE, NARROW)
    return conclude(
        Effect(
            "beam 2 finds more probable outputs than beam 1, log p per token higher by",
            results.difference(LOG_P, NARROW, GREEDY),
        ),
        Effect(
            "beam 12 finds more probable outputs than beam 2, higher by",
            results.difference(LOG_P, WIDE, NARROW),
        ),
        Effect("beam 2 scores higher than beam 1 by", first_gain, unit=BLEU),
        Effect(
            "the gain from beam 1 to 2 exceeds the gain from 2 to 12 by",
            minus(first_gain, second_gain),
            unit=BLEU,
        ),
    )


def plot(results: Results) -> list[Chart]:
    axes = {"logarithmic_x": True, "zero": False}
    return [
        line_over_conditions(results, ("beam width", name), "beam search", WIDTHS, name, **axes)
        for name in (BLEU, LOG_P)
    ]


CLAIM = declare_claim(
    "beam-width",
    conditions=tuple(WIDTHS),
    sizes=TRANSLATION_SIZES,
    measure=measure,
    judge=judge,
    plot=plot,
)
