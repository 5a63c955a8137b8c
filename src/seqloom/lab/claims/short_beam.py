"""Tests the claim: beam search prefers short outputs if scores are sums of log-probabilities.

A length penalty corrects this.
"""

from seqloom.config.schema.decoding import BeamConfig
from seqloom.lab.charts import condition_lines
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

SUM, MEAN = "sum of log p", "divided by length"
WIDTHS = (1, 2, 5, 10, 20)
LENGTH_RATIOS = [f"length at {width}" for width in WIDTHS]
BLEUS = [f"BLEU at {width}" for width in WIDTHS]
BEAM_5 = WIDTHS.index(5)


def measure(trial: Trial[TranslationSettings]) -> Numbers:
    """Measure BLEU and the number of output words per reference word, at each beam width."""
    run = train_once(trial, translation_recipe(trial.settings, trial.seed))
    sentences = read_test_sentences(run, trial.settings.sentences)
    sources = [each.source for each in sentences]
    references = [each.references for each in sentences]
    reference_words = sum(len(each.target.split()) for each in sentences)
    exponent = 0.0 if trial.condition == SUM else 1.0
    numbers = {}
    for width, length_ratio, bleu_name in zip(WIDTHS, LENGTH_RATIOS, BLEUS, strict=True):
        decoding = BeamConfig(width=width, length_penalty=exponent, length_counts_end=True)
        outputs = translate_alone(run, sources, decoding)
        words = sum(len(output.text.split()) for output in outputs)
        numbers[length_ratio] = words / reference_words
        numbers[bleu_name] = bleu([output.text for output in outputs], references).value
    return numbers


def judge(results: Results) -> Verdict:
    unit = "words per reference word"
    bleu_losses = [
        results.between((condition, BLEUS[BEAM_5]), (condition, BLEUS[-1]))
        for condition in (SUM, MEAN)
    ]
    return conclude(
        Effect(
            "with sums, outputs of beam 5 are shorter than those of beam 1 by",
            results.between((SUM, LENGTH_RATIOS[0]), (SUM, LENGTH_RATIOS[BEAM_5])),
            unit=unit,
        ),
        Effect(
            "with sums, outputs of beam 20 are shorter than those of beam 5 by",
            results.between((SUM, LENGTH_RATIOS[BEAM_5]), (SUM, LENGTH_RATIOS[-1])),
            unit=unit,
        ),
        Effect(
            "with beam 5, outputs are longer if divided by length than with sums, by",
            results.difference(LENGTH_RATIOS[BEAM_5], MEAN, SUM),
            unit=unit,
        ),
        Effect(
            "from beam 5 to 20, the loss with sums exceeds the loss if divided by length by",
            minus(*bleu_losses),
            unit="BLEU",
        ),
    )


def plot(results: Results) -> list[Chart]:
    axes = {"logarithmic_x": True, "zero": False}
    quantities = {"output words per reference word": LENGTH_RATIOS, "BLEU": BLEUS}
    return [
        condition_lines(results, ("beam width", label), (SUM, MEAN), WIDTHS, names, **axes)
        for label, names in quantities.items()
    ]


CLAIM = declare_claim(
    "short-beam",
    conditions=(SUM, MEAN),
    sizes=TRANSLATION_SIZES,
    measure=measure,
    judge=judge,
    plot=plot,
)
