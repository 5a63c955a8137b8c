"""GRUs that copy strings of letters: what claims about attention change one switch of."""

from collections.abc import Sequence
from dataclasses import dataclass

from seqloom.config.schema.decoding import GreedyConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.lab.claim import Column, Size, Trial
from seqloom.lab.experiment import (
    Tables,
    letters,
    recipe,
    right_letters,
    trained,
    training,
    unseen,
)
from seqloom.lab.results import Numbers, Results
from seqloom.viz.chart import BarChart, Chart, LineChart, Series

LENGTHS = (4, 8, 12, 16, 20)
LONGEST = LENGTHS[-1]
NAMES = [f"accuracy at {length}" for length in LENGTHS]
COLUMNS = tuple(
    Column(name, f"{length} letters", ".1%") for name, length in zip(NAMES, LENGTHS, strict=True)
)
NO_ATTENTION: Tables = {"kind": "none"}
_CORPUS = letters("copy", 1, LONGEST, symbols=10)


@dataclass(frozen=True)
class CopierSettings:
    """How much a copier learns, and on how many strings of each length it is tested."""

    examples: int
    steps: int
    width: int
    tests: int


COPIER_SIZES: dict[Size, CopierSettings] = {
    "tiny": CopierSettings(examples=60, steps=2, width=8, tests=2),
    "small": CopierSettings(examples=10_000, steps=300, width=64, tests=100),
    "full": CopierSettings(examples=100_000, steps=2_000, width=256, tests=1_000),
}


def copier(trial: Trial[CopierSettings], decoder: Tables, batch_tokens: int = 1_024) -> RunConfig:
    """Encoder states are as wide as decoder states, so that the two can be compared directly."""
    settings = trial.settings
    # What stands where is told to both, so that nobody has to learn to count first.
    positions = {"kind": "sinusoidal", "join": "append", "width": settings.width // 2}
    shared = {"kind": "recurrent", "positions": positions}
    return recipe(
        {
            "data": {
                "train": {**_CORPUS, "examples": settings.examples, "seed": trial.seed},
                "dev": {**_CORPUS, "examples": 20},
            },
            "text": {"tokenizer": {"kind": "characters"}},
            "model": {
                "encoder": {**shared, "width": settings.width // 2},
                "decoder": {**shared, "width": settings.width, **decoder},
            },
            "training": training(settings.steps, trial.seed, 4e-3, batch_tokens),
        }
    )


def copied(trial: Trial[CopierSettings], config: RunConfig) -> Numbers:
    """The share of right letters at each length, by greedy search."""
    run = trained(trial, config)
    numbers = {}
    for length, name in zip(LENGTHS, NAMES, strict=True):
        pairs = unseen(_CORPUS, length, trial.settings.tests)
        sources = [one.source for one in pairs]
        found = run.translate(sources, decoding=GreedyConfig(), attention=False)
        numbers[name] = right_letters([one.text for one in found], [one.target for one in pairs])
    return numbers


def drawn(results: Results, curves: Sequence[str], bars: Sequence[str]) -> list[Chart]:
    """Right letters by length for some conditions, and at the longest for some."""
    return [
        LineChart(
            "letters to copy",
            "share of right letters",
            [Series(one, LENGTHS, results.curve(one, NAMES)) for one in curves],
        ),
        BarChart(
            f"share of right letters, {LONGEST} letters to copy",
            bars,
            [results.over_seeds(one, NAMES[-1]) for one in bars],
        ),
    ]
