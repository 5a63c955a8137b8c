"""Tests the claims: data of a related language pair helps a pair with little data, and zero-shot
translation works.

The control is a language pair that is not related. Zero-shot translation is between two languages
that never occur together in training.
"""

from dataclasses import dataclass
from itertools import islice, permutations
from pathlib import Path

from seqloom.config.schema.decoding import GreedyConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.lab.charts import condition_bars
from seqloom.lab.claim import Trial, declare_claim
from seqloom.lab.models.toy_languages import (
    DISTANT,
    ENGLISH,
    FRENCH,
    GERMAN,
    ISLAND,
    LANGUAGES,
    REMOTE,
    ToyLanguage,
    clauses,
    sentence,
    write_pairs,
)
from seqloom.lab.models.trained_models import (
    Tables,
    build_recipe,
    train_once,
    training_tables,
)
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.metrics.error_rates import token_accuracy
from seqloom.viz.chart import Chart

Direction = tuple[ToyLanguage, ToyLanguage]
ALONE = "small pair alone"
WITH_RELATED, WITH_UNRELATED = "with a related pair", "with an unrelated pair"
SUPERVISED = "all pairs"
ZERO_SHOT, ONE_PIVOT = "zero-shot, two pivots", "zero-shot, one pivot"
SMALL_PAIR: Direction = (ENGLISH, ISLAND)
RELATED_PAIR: Direction = (ENGLISH, FRENCH)
"""Shares the source language with the small pair. The target languages have the same word order."""
UNRELATED_PAIR: Direction = (DISTANT, REMOTE)
"""Shares no word and no word order with the small pair."""
SMALL_PAIR_CONDITIONS: dict[str, list[Direction]] = {
    ALONE: [SMALL_PAIR],
    WITH_RELATED: [SMALL_PAIR, RELATED_PAIR],
    WITH_UNRELATED: [SMALL_PAIR, UNRELATED_PAIR],
}
TESTED: Direction = (GERMAN, FRENCH)
"""The direction of the zero-shot test."""
DIRECTIONS = list(permutations(LANGUAGES, 2))


@dataclass(frozen=True)
class RelatedLanguagesSettings:
    """Sizes of the experiment.

    small: number of training sentences of the language pair with little data
    large: number of training sentences of every other pair
    nouns: number of nouns in the languages
    tests: number of test sentences
    """

    small: int
    large: int
    steps: int
    width: int
    nouns: int
    tests: int


def training_directions(condition: str) -> list[Direction]:
    """Return the translation directions to train on in a condition of the experiment.

    The zero-shot conditions test German to French, but do not train on this direction. In the
    training data, German and French occur only together with other languages, the pivots. With two
    pivots, the model is trained on all directions except those between German and French. With one
    pivot, it is trained only on the directions from and to English.
    """
    if condition in SMALL_PAIR_CONDITIONS:
        return SMALL_PAIR_CONDITIONS[condition]
    if condition == SUPERVISED:
        return DIRECTIONS
    if condition == ONE_PIVOT:
        return [direction for direction in DIRECTIONS if ENGLISH in direction]
    return [direction for direction in DIRECTIONS if set(direction) != set(TESTED)]


def configure(trial: Trial[RelatedLanguagesSettings]) -> RunConfig:
    """Return the recipe of a GRU with attention.

    A tag before each source names the target language.
    """
    settings, directions = trial.settings, training_directions(trial.condition)
    pairs = [f"{source.name}-{target.name}" for source, target in directions]
    files: Tables = {"kind": "languages", "path": "{pair}.{language}"}
    bilinear = {"score": {"kind": "bilinear"}}
    # Dropout encourages the directions to share parameters. It is the same in all conditions.
    shared = {"kind": "recurrent", "dropout": 0.2}
    data: Tables = {"folder": str(_folder(trial)), "train": {**files, "pairs": pairs}}
    if len(directions) > 1:
        # Without a temperature, pairs are sampled in proportion to their sizes, and the small pair
        # would be rare.
        data["temperature"] = 5
    return build_recipe(
        {
            "data": {**data, "dev": {**files, "pairs": pairs[:1]}},
            "text": {"tokenizer": {"kind": "whitespace"}, "shared": True},
            "model": {
                "encoder": {**shared, "width": settings.width // 2},
                "decoder": {**shared, "width": settings.width, "attention": bilinear},
            },
            "training": training_tables(settings.steps, trial.seed, 4e-3, batch_tokens=1_024),
        }
    )


def _folder(trial: Trial[RelatedLanguagesSettings]) -> Path:
    settings = trial.settings
    sizes = f"{settings.small}-{settings.large}-{settings.nouns}"
    kind = "small" if trial.condition in SMALL_PAIR_CONDITIONS else "all"
    return trial.models / f"languages-{kind}-{sizes}-{trial.seed}"


def write_corpora(trial: Trial[RelatedLanguagesSettings]) -> None:
    settings = trial.settings

    def write(pairs: list[Direction], count: int) -> None:
        write_pairs(_folder(trial), pairs, count, trial.seed, settings.nouns)

    if trial.condition in SMALL_PAIR_CONDITIONS:
        write([SMALL_PAIR], settings.small)
        write([RELATED_PAIR, UNRELATED_PAIR], settings.large)
    else:
        write([pair for pair in DIRECTIONS if pair[0].name < pair[1].name], settings.large)


def measure(trial: Trial[RelatedLanguagesSettings]) -> Numbers:
    """Measure accuracy on unseen sentences.

    In the conditions that train on the pair with little data, the model translates sentences of
    this pair (`SMALL_PAIR`). In all other conditions, it translates from German to French
    (`TESTED`), the direction of the zero-shot test.
    """
    write_corpora(trial)
    run = train_once(trial, configure(trial))
    source, target = SMALL_PAIR if trial.condition in SMALL_PAIR_CONDITIONS else TESTED
    tests = list(islice(clauses("test", 0, trial.settings.nouns), trial.settings.tests))
    predictions = run.translate(
        [sentence(clause, source) for clause in tests],
        decoding=GreedyConfig(),
        attention=False,
        split=False,
        pass_through=False,
        to=target.name,
    )
    outputs = [prediction.text for prediction in predictions]
    references = [sentence(clause, target) for clause in tests]
    words = [word for output in outputs for word in output.split()]
    exact = sum(output == text for output, text in zip(outputs, references, strict=True))
    return {
        "word accuracy": token_accuracy(outputs, [(text,) for text in references]).value / 100,
        "correct language": sum(word.endswith(f".{target.name}") for word in words)
        / max(1, len(words)),
        "exact": exact / len(tests),
    }


def judge(results: Results) -> Verdict:
    return conclude(
        Effect(
            "a related pair raises the word accuracy of a small pair by",
            results.difference("word accuracy", WITH_RELATED, ALONE),
            format_spec=".1%",
        ),
        Effect(
            "a related pair raises it more than an unrelated pair of the same size, by",
            results.difference("word accuracy", WITH_RELATED, WITH_UNRELATED),
            format_spec=".1%",
        ),
        *(
            Effect(
                f"between two languages that never meet in training, {pivots}, the word accuracy is",
                results.over_seeds(condition, "word accuracy"),
                above=0.5,
                format_spec=".1%",
            )
            for condition, pivots in ((ZERO_SHOT, "with two pivots"), (ONE_PIVOT, "with one pivot"))
        ),
    )


def plot(results: Results) -> list[Chart]:
    charts = {
        "word accuracy, small pair": tuple(SMALL_PAIR_CONDITIONS),
        "word accuracy, German to French": (SUPERVISED, ZERO_SHOT, ONE_PIVOT),
    }
    return [
        condition_bars(results, label, conditions, "word accuracy")
        for label, conditions in charts.items()
    ]


CLAIM = declare_claim(
    "related-languages",
    conditions=(*SMALL_PAIR_CONDITIONS, SUPERVISED, ZERO_SHOT, ONE_PIVOT),
    sizes=RelatedLanguagesSettings,
    measure=measure,
    judge=judge,
    plot=plot,
    min_seeds=5,
)
