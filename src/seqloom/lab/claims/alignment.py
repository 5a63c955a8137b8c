"""Where a decoder looks is which source word it translates."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from torch import Tensor

from seqloom.config.schema.recipe import RunConfig
from seqloom.lab.claim import Claim, Column, Trial
from seqloom.lab.experiment import Tables, letters, recipe, trained, training, unseen
from seqloom.lab.made_languages import ENGLISH, FRENCH, alignment, clauses, sentence, write_pairs
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.viz.chart import BarChart, Chart, LineChart, Series

COPY, REVERSE, SWAP = "copy", "reverse", "adjectives behind nouns"
TASKS = (COPY, REVERSE, SWAP)
LONGEST = 10
AWAY = (-3, -2, -1, 0, 1, 2, 3)
NAMES = [f"weight at {away:+d}" for away in AWAY]


@dataclass(frozen=True)
class Settings:
    examples: int
    steps: int
    width: int
    tests: int
    words: int
    """Nouns of the made-up languages."""


@dataclass(frozen=True)
class Aligned:
    """A pair of texts, and for each target token the place of its source token."""

    source: str
    target: str
    truth: list[int]


def configure(trial: Trial[Settings]) -> RunConfig:
    """A GRU with attention. Between strings of letters it is told what stands where."""
    settings = trial.settings
    shared: Tables = {"kind": "recurrent"}
    if trial.condition == SWAP:
        data = {"folder": str(_folder(trial)), "train": _FILES, "dev": _FILES | {"last_line": 20}}
        tokenizer = "whitespace"
    else:
        corpus = letters(trial.condition, 1, LONGEST)
        train = {**corpus, "examples": settings.examples, "seed": trial.seed}
        data = {"train": train, "dev": {**corpus, "examples": 20}}
        tokenizer = "characters"
        width = settings.width // 2
        shared["positions"] = {"kind": "sinusoidal", "join": "append", "width": width}
    attention = {"score": {"kind": "bilinear"}}
    return recipe(
        {
            "data": data,
            "text": {"tokenizer": {"kind": tokenizer}},
            "model": {
                "encoder": {**shared, "width": settings.width // 2},
                "decoder": {**shared, "width": settings.width, "attention": attention},
            },
            "training": training(settings.steps, trial.seed, 4e-3, batch_tokens=1_024),
        }
    )


_FILES = {"kind": "parallel", "source": "en-fr.en", "target": "en-fr.fr"}


def _folder(trial: Trial[Settings]) -> Path:
    settings = trial.settings
    return trial.models / f"en-fr-{settings.words}-{settings.examples}-{trial.seed}"


def measure(trial: Trial[Settings]) -> Numbers:
    """Where the decoder looks on its way through the true target, against where it should.

    weight at +1: the mean weight of the source token one place behind the right one
    """
    settings = trial.settings
    if trial.condition == SWAP:
        pair = [(ENGLISH, FRENCH)]
        write_pairs(_folder(trial), pair, settings.examples, trial.seed, settings.words)
    run = trained(trial, configure(trial))
    tests = _tests(trial)
    scored = run.score([one.source for one in tests], [one.target for one in tests])
    found = [
        look_at(one.attention[row], place, row)
        for one, test in zip(scored, tests, strict=True)
        if one.attention is not None
        for row, place in enumerate(test.truth)
    ]
    return {name: sum(one[name] for one in found) / len(found) for name in found[0]}


def _tests(trial: Trial[Settings]) -> list[Aligned]:
    count = trial.settings.tests
    if trial.condition == SWAP:
        return [
            Aligned(sentence(one, ENGLISH), sentence(one, FRENCH), alignment(one, ENGLISH, FRENCH))
            for one in islice(clauses("test", 0, trial.settings.words), count)
        ]
    places = list(range(LONGEST))
    truth = places if trial.condition == COPY else places[::-1]
    pairs = unseen(letters(trial.condition, 1, LONGEST), LONGEST, count)
    return [Aligned(one.source, one.target, truth) for one in pairs]


def look_at(weights: Tensor, place: int, row: int) -> Numbers:
    """weights (S,): where target token `row` looks. place: where it should. END is the last."""
    beside = {
        name: float(weights[place + away]) if 0 <= place + away < len(weights) else 0.0
        for away, name in zip(AWAY, NAMES, strict=True)
    }
    return {
        "right": float(int(weights.argmax()) == place),
        "diagonal": float(row == place),
        "even": 1 / len(weights),
        **beside,
    }


def judge(results: Results) -> Verdict:
    return conclude(
        *(
            Effect(
                f"{task}: the token that is looked at most is the right one in",
                results.over_seeds(task, "right"),
                above=0.5,
                form=".1%",
            )
            for task in TASKS
        ),
        *(
            Effect(
                f"{task}: that is more often than on the diagonal, by",
                results.between((task, "right"), (task, "diagonal")),
                form=".1%",
            )
            for task in (REVERSE, SWAP)
        ),
    )


def plot(results: Results) -> list[Chart]:
    series = [Series(task, AWAY, results.curve(task, NAMES)) for task in TASKS]
    bars = [(task, "right") for task in TASKS] + [(SWAP, "diagonal"), (SWAP, "even")]
    names = (*TASKS, f"diagonal, {SWAP}", f"at random, {SWAP}")
    return [
        LineChart("source tokens away from the right one", "mean attention weight", series),
        BarChart(
            "share of target tokens aligned rightly", names, [results.over_seeds(*b) for b in bars]
        ),
    ]


CLAIM = Claim(
    name="alignment",
    sentence="Attention weights are alignments: a decoder looks at the source word that it "
    "translates, along the diagonal where the order is kept, and off it where adjectives and nouns "
    "change places.",
    source="L2, Visualizing attention weights (European economic area, zone économique européenne)",
    setup="A bidirectional GRU with attention learns to copy and to reverse strings of 1 to 10 "
    "letters, and to translate between two made-up languages, of which one has its adjectives "
    "before the noun and the other behind it, in reverse order. Nobody tells it the alignment, "
    "which is known. The decoder is led through the true targets of unseen sources; compared: the "
    "source token with the largest weight, and the right one. Baselines: the token at the same "
    "place (the diagonal), and any token (at random).",
    confirms="In all three, most tokens are looked at rightly; in reversing and translating, more "
    "than the diagonal gets.",
    refutes="One of these is the other way round with every seed.",
    conditions=TASKS,
    sizes={
        "tiny": Settings(examples=60, steps=2, width=8, tests=2, words=4),
        "small": Settings(examples=8_000, steps=300, width=64, tests=200, words=20),
        "full": Settings(examples=100_000, steps=2_000, width=256, tests=1_000, words=100),
    },
    measure=measure,
    judge=judge,
    plot=plot,
    columns=(
        Column("right", "looked at rightly", ".1%"),
        Column("diagonal", "on the diagonal", ".1%"),
        Column("even", "at random", ".1%"),
        Column(NAMES[AWAY.index(0)], "weight of the right token", ".1%"),
    ),
)
