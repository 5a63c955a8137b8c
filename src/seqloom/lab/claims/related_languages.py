"""Data of a related language pair helps a low-resource pair, and zero-shot translation works."""

from dataclasses import dataclass
from itertools import islice, permutations
from pathlib import Path

from seqloom.config.schema.decoding import GreedyConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.lab.claim import Claim, Column, Trial
from seqloom.lab.models.toy_languages import (
    ENGLISH,
    FRENCH,
    GERMAN,
    ISLAND,
    LANGUAGES,
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
from seqloom.viz.chart import BarChart, Chart

Direction = tuple[ToyLanguage, ToyLanguage]
ALONE, WITH_RELATED = "small pair alone", "with a related pair"
ALL_DIRECTIONS, ZERO_SHOT = "all directions", "one direction held out"
SMALL_PAIR: Direction = (ENGLISH, ISLAND)
RELATED_PAIR: Direction = (ENGLISH, FRENCH)
HELD_OUT: Direction = (GERMAN, FRENCH)
DIRECTIONS = list(permutations(LANGUAGES, 2))


@dataclass(frozen=True)
class RelatedLanguagesSettings:
    """Sizes of the experiment.

    small: number of training sentences of `SMALL_PAIR`, the pair with little data
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
    if condition in (ALONE, WITH_RELATED):
        return [SMALL_PAIR] if condition == ALONE else [SMALL_PAIR, RELATED_PAIR]
    return [
        direction
        for direction in DIRECTIONS
        if condition == ALL_DIRECTIONS or direction != HELD_OUT
    ]


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
    kind = "small" if trial.condition in (ALONE, WITH_RELATED) else "all"
    return trial.models / f"languages-{kind}-{sizes}-{trial.seed}"


def _write_corpora(trial: Trial[RelatedLanguagesSettings]) -> None:
    settings = trial.settings

    def write(pairs: list[Direction], count: int) -> None:
        write_pairs(_folder(trial), pairs, count, trial.seed, settings.nouns)

    if trial.condition in (ALONE, WITH_RELATED):
        write([SMALL_PAIR], settings.small)
        write([RELATED_PAIR], settings.large)
    else:
        write([pair for pair in DIRECTIONS if pair[0].name < pair[1].name], settings.large)


def measure(trial: Trial[RelatedLanguagesSettings]) -> Numbers:
    """Measure accuracy on unseen sentences of one direction.

    This is `SMALL_PAIR` in the conditions about little data, and `HELD_OUT` in the conditions about
    zero-shot translation.
    """
    _write_corpora(trial)
    run = train_once(trial, configure(trial))
    source, target = SMALL_PAIR if trial.condition in (ALONE, WITH_RELATED) else HELD_OUT
    tests = list(islice(clauses("test", 0, trial.settings.nouns), trial.settings.tests))
    predictions = run.translate(
        [sentence(clause, source) for clause in tests],
        decoding=GreedyConfig(),
        attention=False,
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
            "in the held-out direction the word accuracy is",
            results.over_seeds(ZERO_SHOT, "word accuracy"),
            above=0.5,
            format_spec=".1%",
        ),
    )


def plot(results: Results) -> list[Chart]:
    def bars(conditions: tuple[str, str], label: str) -> BarChart:
        values = [results.over_seeds(condition, "word accuracy") for condition in conditions]
        return BarChart(label, conditions, values)

    return [
        bars((ALONE, WITH_RELATED), "word accuracy, small pair"),
        bars((ALL_DIRECTIONS, ZERO_SHOT), "word accuracy, held-out direction"),
    ]


CLAIM = Claim(
    name="related-languages",
    sentence="Data of a related language pair helps a pair with little data; and one multilingual "
    "model translates between two of its languages in a direction that it was not trained on.",
    source="L0 §1.3.5 (would it be helpful to have English-to-Spanish data?)",
    setup="Four toy languages express the same clauses in different words, two of them with "
    "adjectives before the noun and two after it, and every pair has different sentences. Related "
    "pair: few sentences from one language into a second, alone or with many from the same "
    "language into a third, which has the word order of the second. Zero-shot: one model trains on "
    "all twelve directions, or on all but one, and is tested on that one. All train for the same "
    "number of steps. Tested on unseen sentences by greedy search.",
    confirms="The word accuracy of the small pair is higher with the related pair than alone; in "
    "the held-out direction most words are correct.",
    refutes="The opposite of one of these statements holds with every seed.",
    conditions=(ALONE, WITH_RELATED, ALL_DIRECTIONS, ZERO_SHOT),
    sizes={
        "tiny": RelatedLanguagesSettings(small=30, large=40, steps=2, width=8, nouns=4, tests=2),
        "small": RelatedLanguagesSettings(
            small=100, large=1_000, steps=600, width=64, nouns=8, tests=200
        ),
        "full": RelatedLanguagesSettings(
            small=500, large=20_000, steps=3_000, width=256, nouns=60, tests=1_000
        ),
    },
    measure=measure,
    judge=judge,
    plot=plot,
    columns=(
        Column("word accuracy", "word accuracy", ".1%"),
        Column("correct language", "in the correct language", ".1%"),
        Column("exact", "exact sentences", ".1%"),
    ),
)
