"""Fed the truth a decoder learns faster than fed its own words; fed a mixture it is more robust."""

from dataclasses import dataclass

from seqloom.config.schema.decoding import GreedyConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.data.example import Example
from seqloom.lab.claim import Claim, Column, Trial
from seqloom.lab.experiment import (
    Tables,
    learning_curve,
    letters,
    recipe,
    right_letters,
    trained,
    training,
    unseen,
)
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.runs.run import Run
from seqloom.viz.chart import BarChart, Chart, LineChart, Series

TRUTH, FREE, MIXTURE = "the truth", "its own words", "a mixture"
LONGEST = 8
CORPUS = letters("copy", 2, LONGEST, symbols=10)
LOOKS = 10
"""Evaluations on the way."""
MOMENTS = [f"exact after {tenth} tenths" for tenth in range(1, LOOKS + 1)]


@dataclass(frozen=True)
class Settings:
    examples: int
    steps: int
    width: int
    tests: int


def configure(trial: Trial[Settings]) -> RunConfig:
    """A plain encoder-decoder copies strings; the conditions differ in what it is fed."""
    settings = trial.settings
    feeding: dict[str, Tables] = {
        TRUTH: {"kind": "teacher-forcing"},
        FREE: {"kind": "free-running"},
        MIXTURE: {"kind": "scheduled-sampling", "end": 0.5, "steps": settings.steps},
    }
    decoder = {"kind": "recurrent", "width": settings.width, "handover": "whole"}
    every = settings.steps // LOOKS
    return recipe(
        {
            "task": {"scores": ["exact-match"]},
            "data": {
                "train": {**CORPUS, "examples": settings.examples, "seed": trial.seed},
                "dev": {**CORPUS, "examples": settings.tests},
            },
            "text": {"tokenizer": {"kind": "characters"}},
            "model": {
                "encoder": {"kind": "recurrent", "width": settings.width // 2},
                "decoder": {**decoder, "attention": {"kind": "none"}},
            },
            "training": {
                **training(settings.steps, trial.seed, 4e-3),
                "feeding": feeding[trial.condition],
                "evaluate_every": every,
                "evaluate_examples": settings.tests,
                "stopping": {"score": "exact-match"},
            },
        }
    )


def measure(trial: Trial[Settings]) -> Numbers:
    """Exact outputs on the way, and right letters after one that was wrong."""
    run = trained(trial, configure(trial))
    curve = [value for _, value in learning_curve(run, "exact-match")]
    pairs = unseen(CORPUS, LONGEST, trial.settings.tests)
    plain = run.translate([one.source for one in pairs], decoding=GreedyConfig())
    return {
        **dict(zip(MOMENTS, curve, strict=True)),
        "speed": sum(curve) / len(curve),
        "at the end": curve[-1],
        "rest": right_letters(
            [one.text[LONGEST // 2 + 1 :] for one in plain],
            [one.target[LONGEST // 2 + 1 :] for one in pairs],
        ),
        "rest after a mistake": _after_a_mistake(run, pairs),
    }


def _after_a_mistake(run: Run, pairs: list[Example]) -> float:
    """The share of right letters behind one in the middle that is made to be wrong."""
    middle = LONGEST // 2
    begun = [one.target[:middle] + _another(one.target[middle]) for one in pairs]
    found = run.translate([one.source for one in pairs], decoding=GreedyConfig(), prefixes=begun)
    return right_letters(
        [one.text[middle + 1 :] for one in found], [one.target[middle + 1 :] for one in pairs]
    )


def _another(letter: str) -> str:
    """The next letter of the alphabet of ten."""
    return chr(ord("a") + (ord(letter) - ord("a") + 1) % 10)


def judge(results: Results) -> Verdict:
    return conclude(
        Effect(
            "averaged over the training, being fed the truth is ahead of its own words by",
            results.difference("speed", TRUTH, FREE),
            unit="percent of exact outputs",
        ),
        Effect(
            "after a mistake, the mixture gets more letters right than the truth, by",
            results.difference("rest after a mistake", MIXTURE, TRUTH),
            form=".1%",
        ),
    )


def plot(results: Results) -> list[Chart]:
    ways = (TRUTH, MIXTURE, FREE)
    tenths = [tenth / LOOKS for tenth in range(1, LOOKS + 1)]
    series = [Series(f"fed {one}", tenths, results.curve(one, MOMENTS)) for one in ways]
    return [
        LineChart("share of the training", "exact outputs, percent", series),
        BarChart(
            "share of right letters after a mistake",
            [f"fed {one}" for one in ways],
            [results.over_seeds(one, "rest after a mistake") for one in ways],
        ),
    ]


CLAIM = Claim(
    name="teacher-forcing",
    sentence="A decoder that is fed the true previous token learns faster than one that is fed its "
    "own; fed a mixture of both, it becomes more robust against its own mistakes.",
    source="L0 §1.3.3 and §1.3.4 (teacher forcing, autoregression)",
    setup="A GRU without attention copies strings of 2 to 8 letters, fed the truth, its own words, "
    "or a mixture whose share of truth falls from 1 to a half (scheduled sampling). Measured: the "
    "share of exact outputs by greedy search at ten moments of the training; and, at its end, the "
    "share of right letters behind one in the middle of a string that was made to be wrong.",
    confirms="Averaged over the training, more outputs are exact with the truth than with its own "
    "words; after a forced mistake, more letters are right with the mixture than with the truth.",
    refutes="One of these is the other way round with every seed.",
    conditions=(TRUTH, MIXTURE, FREE),
    sizes={
        "tiny": Settings(examples=60, steps=10, width=8, tests=4),
        "small": Settings(examples=10_000, steps=300, width=64, tests=200),
        "full": Settings(examples=100_000, steps=4_000, width=256, tests=1_000),
    },
    measure=measure,
    judge=judge,
    plot=plot,
    columns=(
        Column("speed", "exact, mean of the training", ".1f"),
        Column("at the end", "exact at the end", ".1f"),
        Column("rest", "right letters, second half", ".1%"),
        Column("rest after a mistake", "the same after a mistake", ".1%"),
    ),
)
