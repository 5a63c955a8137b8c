"""Data of a related pair helps a small one, and a pair without data can be translated."""

from dataclasses import dataclass
from itertools import islice, permutations
from pathlib import Path

from seqloom.config.schema.decoding import GreedyConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.lab.claim import Claim, Column, Trial
from seqloom.lab.experiment import Tables, recipe, trained, training
from seqloom.lab.made_languages import (
    ENGLISH,
    FRENCH,
    GERMAN,
    ISLAND,
    LANGUAGES,
    Language,
    clauses,
    sentence,
    write_pairs,
)
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.metrics.overlap import token_accuracy
from seqloom.viz.chart import BarChart, Chart

Direction = tuple[Language, Language]
ALONE, HELPED = "small pair alone", "with a related pair"
EVERY, ZERO = "every direction", "one held out"
SMALL: Direction = (ENGLISH, ISLAND)
RELATED: Direction = (ENGLISH, FRENCH)
ASKED: Direction = (GERMAN, FRENCH)
"""The direction that is held out, and asked for."""
ALL = list(permutations(LANGUAGES, 2))


@dataclass(frozen=True)
class Settings:
    small: int
    """Sentences of the small pair."""
    large: int
    """Sentences of every other pair."""
    steps: int
    width: int
    words: int
    tests: int


def directions(condition: str) -> list[Direction]:
    """What is trained on."""
    if condition in (ALONE, HELPED):
        return [SMALL] if condition == ALONE else [SMALL, RELATED]
    return [one for one in ALL if condition == EVERY or one != ASKED]


def configure(trial: Trial[Settings]) -> RunConfig:
    """A GRU with attention reads sentences with the language that is wanted before them."""
    settings, chosen = trial.settings, directions(trial.condition)
    pairs = [f"{source.name}-{target.name}" for source, target in chosen]
    files: Tables = {"kind": "languages", "path": "{pair}.{language}"}
    bilinear = {"score": {"kind": "bilinear"}}
    # Dropout, so that directions have a reason to share what they know; not compared with none.
    shared = {"kind": "recurrent", "dropout": 0.2}
    data: Tables = {"folder": str(_folder(trial)), "train": {**files, "pairs": pairs}}
    if len(chosen) > 1:
        # Drawn by its size, the small pair would hardly be seen.
        data["temperature"] = 5
    return recipe(
        {
            "data": {**data, "dev": {**files, "pairs": pairs[:1]}},
            "text": {"tokenizer": {"kind": "whitespace"}, "shared": True},
            "model": {
                "encoder": {**shared, "width": settings.width // 2},
                "decoder": {**shared, "width": settings.width, "attention": bilinear},
            },
            "training": training(settings.steps, trial.seed, 4e-3, batch_tokens=1_024),
        }
    )


def _folder(trial: Trial[Settings]) -> Path:
    settings = trial.settings
    sizes = f"{settings.small}-{settings.large}-{settings.words}"
    kind = "small" if trial.condition in (ALONE, HELPED) else "all"
    return trial.models / f"languages-{kind}-{sizes}-{trial.seed}"


def _write(trial: Trial[Settings]) -> None:
    settings = trial.settings

    def write(pairs: list[Direction], count: int) -> None:
        write_pairs(_folder(trial), pairs, count, trial.seed, settings.words)

    if trial.condition in (ALONE, HELPED):
        write([SMALL], settings.small)
        write([RELATED], settings.large)
    else:
        write([pair for pair in ALL if pair[0].name < pair[1].name], settings.large)


def measure(trial: Trial[Settings]) -> Numbers:
    """The share of right words of unseen sentences in the direction in question."""
    _write(trial)
    run = trained(trial, configure(trial))
    source, target = SMALL if trial.condition in (ALONE, HELPED) else ASKED
    tests = list(islice(clauses("test", 0, trial.settings.words), trial.settings.tests))
    found = run.translate(
        [sentence(one, source) for one in tests],
        decoding=GreedyConfig(),
        attention=False,
        to=target.name,
    )
    outputs = [one.text for one in found]
    truth = [sentence(one, target) for one in tests]
    said = [word for text in outputs for word in text.split()]
    return {
        "right words": token_accuracy(outputs, [(text,) for text in truth]).value / 100,
        "right language": sum(word.endswith(f".{target.name}") for word in said)
        / max(1, len(said)),
        "exact": sum(one == other for one, other in zip(outputs, truth, strict=True)) / len(tests),
    }


def judge(results: Results) -> Verdict:
    return conclude(
        Effect(
            "a related pair raises the share of right words of a small one by",
            results.difference("right words", HELPED, ALONE),
            form=".1%",
        ),
        Effect(
            "in a direction that was never trained on, right words are",
            results.over_seeds(ZERO, "right words"),
            above=0.5,
            form=".1%",
        ),
    )


def plot(results: Results) -> list[Chart]:
    def bars(conditions: tuple[str, str], label: str) -> BarChart:
        values = [results.over_seeds(one, "right words") for one in conditions]
        return BarChart(label, conditions, values)

    return [
        bars((ALONE, HELPED), "share of right words, small pair"),
        bars((EVERY, ZERO), "share of right words, the direction that is held out"),
    ]


CLAIM = Claim(
    name="related-languages",
    sentence="Data of a related pair of languages helps a pair with little data; and one model of "
    "many languages translates between two of them whose direction it was never shown.",
    source="L0 §1.3.5 (would it be helpful to have English-to-Spanish data?)",
    setup="Four made-up languages say the same in words of their own, two of them with adjectives "
    "before the noun and two behind it, and every pair has sentences of its own. Helped: few sentences from one language into another, alone or with "
    "many from the same language into a third, which like the second puts nouns before adjectives. "
    "Zero-shot: one model learns all twelve directions, or all but one, which is then asked for. "
    "The same number of steps for all. Tested on unseen sentences by greedy search.",
    confirms="The small pair has more right words with the related pair than alone; in the "
    "direction that was held out most words are right.",
    refutes="One of these is the other way round with every seed.",
    conditions=(ALONE, HELPED, EVERY, ZERO),
    sizes={
        "tiny": Settings(small=30, large=40, steps=2, width=8, words=4, tests=2),
        "small": Settings(small=100, large=1_000, steps=600, width=64, words=8, tests=200),
        "full": Settings(small=500, large=20_000, steps=3_000, width=256, words=60, tests=1_000),
    },
    measure=measure,
    judge=judge,
    plot=plot,
    columns=(
        Column("right words", "right words", ".1%"),
        Column("right language", "in the right language", ".1%"),
        Column("exact", "exact sentences", ".1%"),
    ),
)
