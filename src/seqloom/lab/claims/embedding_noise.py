"""Tests the claim: noise on word embeddings regularises a model.

The noise is a form of data augmentation for text.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from seqloom.config.schema.corpora import BundledConfig
from seqloom.config.schema.decoding import GreedyConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.data.example import Example
from seqloom.data.readers.bundled import read_bundled
from seqloom.inference.run import Run
from seqloom.lab.charts import line_over_conditions
from seqloom.lab.claim import Trial, declare_claim
from seqloom.lab.models.text_files import write_lines
from seqloom.lab.models.trained_models import (
    Tables,
    build_recipe,
    train_once,
    training_tables,
    translate_alone,
)
from seqloom.lab.results import Numbers, Results, minus
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.metrics.bleu import bleu
from seqloom.viz.chart import Chart

NOISES = {"no noise": 0.0, "noise 0.3": 0.3, "noise 1": 1.0}
NO_NOISE, SOME_NOISE, STRONG_NOISE = NOISES
TRAIN_PERPLEXITY, TEST_PERPLEXITY, BLEU = "perplexity, training", "perplexity, unseen", "BLEU"
_CORPUS = BundledConfig(source="de", target="en")
_FILES: Tables = {"kind": "parallel", "source": "de", "target": "en"}


@dataclass(frozen=True)
class NoiseSettings:
    """Sizes of the experiment.

    examples: number of training sentences, few enough to overfit
    pieces:   size of the vocabulary
    tests:    number of test sentences
    """

    examples: int
    steps: int
    width: int
    pieces: int
    tests: int


def _folder(trial: Trial[NoiseSettings]) -> Path:
    return trial.models / f"tatoeba-{trial.settings.examples}-{trial.seed}"


def configure(trial: Trial[NoiseSettings]) -> RunConfig:
    """Return the recipe of a GRU with attention. The noise is the only regularisation."""
    settings = trial.settings
    embedding = {"kind": "learned", "noise": NOISES[trial.condition]}
    shared = {"kind": "recurrent", "width": settings.width, "embedding": embedding}
    attention = {"score": {"kind": "dot"}, "projection": "linear"}
    return build_recipe(
        {
            "data": {
                "folder": str(_folder(trial)),
                "train": _FILES,
                "dev": {"kind": "bundled", "source": "de", "target": "en"},
            },
            "text": {"tokenizer": {"kind": "subwords", "size": settings.pieces}},
            "model": {"encoder": shared, "decoder": {**shared, "attention": attention}},
            "training": training_tables(settings.steps, trial.seed, 4e-3, batch_tokens=1_024),
        }
    )


def _write_training_sentences(trial: Trial[NoiseSettings]) -> list[Example]:
    """Draw training sentences at random, with the seed of the trial, and write them to files."""
    corpus = list(read_bundled(_CORPUS, "train"))
    sample = Random(trial.seed).sample(corpus, trial.settings.examples)
    sides = {"de": [each.source for each in sample], "en": [each.target for each in sample]}
    write_lines(_folder(trial), sides)
    return sample


def measure(trial: Trial[NoiseSettings]) -> Numbers:
    """Measure perplexity on training sentences, and perplexity and BLEU on unseen sentences."""
    training_sentences = _write_training_sentences(trial)
    run = train_once(trial, configure(trial))
    unseen = Random(0).sample(list(read_bundled(_CORPUS, "test")), trial.settings.tests)
    sources = [each.source for each in unseen]
    outputs = translate_alone(run, sources, GreedyConfig())
    return {
        TRAIN_PERPLEXITY: _perplexity(run, training_sentences[: trial.settings.tests]),
        TEST_PERPLEXITY: _perplexity(run, unseen),
        BLEU: bleu([each.text for each in outputs], [each.references for each in unseen]).value,
    }


def _perplexity(run: Run, examples: Sequence[Example]) -> float:
    """Return the perplexity per token. END counts as a token."""
    scored = run.score(
        [each.source for each in examples], [each.target for each in examples], attention=False
    )
    log_p = [value for prediction in scored for value in prediction.log_probabilities]
    return math.exp(-sum(log_p) / len(log_p))


def judge(results: Results) -> Verdict:
    def gaps(condition: str) -> list[float]:
        """Return how much worse the model predicts unseen sentences than training sentences.

        The result has one number per seed: the log perplexity of unseen sentences minus that of
        training sentences.
        """
        names = (TEST_PERPLEXITY, TRAIN_PERPLEXITY)
        return [math.log(value) for value in results.ratio(*((condition, name) for name in names))]

    return conclude(
        Effect(
            "noise of 0.3 narrows the gap in log perplexity between unseen and training sentences "
            "by",
            minus(gaps(NO_NOISE), gaps(SOME_NOISE)),
        ),
        Effect(
            "noise of 0.3 lowers the perplexity of unseen sentences by",
            results.difference(TEST_PERPLEXITY, NO_NOISE, SOME_NOISE),
        ),
    )


def plot(results: Results) -> list[Chart]:
    label = "standard deviation of the noise (that of initial embeddings is 1)"
    return [
        line_over_conditions(results, (label, name), "GRU with attention", NOISES, name, zero=False)
        for name in (TEST_PERPLEXITY, TRAIN_PERPLEXITY)
    ]


CLAIM = declare_claim(
    "embedding-noise",
    conditions=tuple(NOISES),
    sizes=NoiseSettings,
    measure=measure,
    judge=judge,
    plot=plot,
)
