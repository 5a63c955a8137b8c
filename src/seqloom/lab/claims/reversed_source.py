"""Tests the claim: a model without attention learns better if it reads the source in reverse."""

from dataclasses import dataclass
from typing import Literal

from seqloom.config.schema.decoding import GreedyConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.lab.charts import condition_bars
from seqloom.lab.claim import Trial, declare_claim
from seqloom.lab.models.trained_models import (
    BUNDLED,
    SUBWORDS,
    Tables,
    build_recipe,
    letter_accuracy,
    letter_corpus,
    strings_to_test,
    train_once,
    training_tables,
)
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.viz.chart import Chart

FORWARD, REVERSED = "read forwards", "read in reverse"
BLEU = "BLEU"
"""Name of a value that is measured only for the task "sentences"."""
LENGTHS = (4, 8, 12)
CORPUS = letter_corpus("copy", 1, LENGTHS[-1], symbols=10)


@dataclass(frozen=True)
class ReversedSourceSettings:
    """Task and sizes of the experiment.

    examples: number of training strings; only for the task "letters"
    rate:     learning rate
    """

    task: Literal["letters", "sentences"]
    examples: int
    steps: int
    width: int
    rate: float


def configure(trial: Trial[ReversedSourceSettings]) -> RunConfig:
    """Return the recipe of an encoder-decoder without attention.

    The condition of the trial says whether the encoder reads the source forwards or in reverse.
    """
    settings = trial.settings
    direction = "forward" if trial.condition == FORWARD else "backward"
    model: Tables = {
        "encoder": {"kind": "recurrent", "width": settings.width, "direction": direction},
        "decoder": {
            "kind": "recurrent",
            "width": settings.width,
            "initial_state": "copy",
            "attention": {"kind": "none"},
        },
    }
    if settings.task == "sentences":
        for side in model.values():
            side["dropout"] = 0.3
        data, text = BUNDLED, SUBWORDS
    else:
        train = {**CORPUS, "examples": settings.examples, "seed": trial.seed}
        split = {**CORPUS, "examples": max(20, settings.examples // 20)}
        data = {"train": train, "dev": split, "test": split}
        text = {"tokenizer": {"kind": "characters"}}
    training = training_tables(settings.steps, trial.seed, settings.rate)
    return build_recipe({"data": data, "text": text, "model": model, "training": training})


def measure(trial: Trial[ReversedSourceSettings]) -> Numbers:
    """Measure perplexity and a score on the test split.

    The score is BLEU for the task "sentences", and letter accuracy in percent for "letters".
    """
    run = train_once(trial, configure(trial))
    report = run.evaluate("test", decoding=GreedyConfig())
    scores = {score.name.lower(): score.value for score in report.scores}
    numbers = {"perplexity": scores["perplexity"]}
    if trial.settings.task == "sentences":
        return {**numbers, "score": scores["bleu"], BLEU: scores["bleu"]}
    for length in LENGTHS:
        examples = strings_to_test(CORPUS, length, max(2, trial.settings.examples // 50))
        sources = [example.source for example in examples]
        predictions = run.translate(sources, decoding=GreedyConfig())
        numbers[f"accuracy at {length}"] = letter_accuracy(
            [prediction.text for prediction in predictions],
            [example.target for example in examples],
        )
    targets = [example.target for example in report.examples]
    return {**numbers, "score": 100 * letter_accuracy(report.outputs, targets)}


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
    labels = {
        "score": "BLEU of sentences, or correct letters in percent",
        "perplexity": "perplexity of the test split",
    }
    return [
        condition_bars(results, label, (FORWARD, REVERSED), name) for name, label in labels.items()
    ]


CLAIM = declare_claim(
    "reversed-source",
    conditions=(FORWARD, REVERSED),
    sizes=ReversedSourceSettings,
    measure=measure,
    judge=judge,
    plot=plot,
)
