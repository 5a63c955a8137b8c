"""GRUs that copy strings of letters. Claims about attention change one option of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from seqloom.config.schema.decoding import GreedyConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.lab.claim import Column, Size, Trial
from seqloom.lab.models.trained_models import (
    Tables,
    build_recipe,
    letter_accuracy,
    letter_corpus,
    strings_to_test,
    train_once,
    training_tables,
)
from seqloom.lab.results import Numbers, Results
from seqloom.viz.chart import BarChart, Chart, LineChart, Series

LENGTHS = (4, 8, 12, 16, 20)
LONGEST = LENGTHS[-1]
ACCURACIES = [f"accuracy at {length}" for length in LENGTHS]
COLUMNS = tuple(
    Column(name, f"{length} letters", ".1%")
    for name, length in zip(ACCURACIES, LENGTHS, strict=True)
)
NO_ATTENTION: Tables = {"kind": "none"}
_CORPUS = letter_corpus("copy", 1, LONGEST, symbols=10)


@dataclass(frozen=True)
class CopySettings:
    """examples: training strings; tests: test strings of each length."""

    examples: int
    steps: int
    width: int
    tests: int


COPY_SIZES: dict[Size, CopySettings] = {
    "tiny": CopySettings(examples=60, steps=2, width=8, tests=2),
    "small": CopySettings(examples=10_000, steps=300, width=64, tests=100),
    "full": CopySettings(examples=100_000, steps=2_000, width=256, tests=1_000),
}


def copy_recipe(
    trial: Trial[CopySettings], decoder: Tables, batch_tokens: int = 1_024
) -> RunConfig:
    """Recipe of a copy model. Encoder and decoder states have the same width.

    Equal widths allow scores that compare the two directly.
    """
    settings = trial.settings
    # With positions in both inputs, the model need not learn to count first.
    positions = {"kind": "sinusoidal", "join": "append", "width": settings.width // 2}
    shared = {"kind": "recurrent", "positions": positions}
    return build_recipe(
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
            "training": training_tables(settings.steps, trial.seed, 4e-3, batch_tokens),
        }
    )


def measure_copying(trial: Trial[CopySettings], config: RunConfig) -> Numbers:
    """Fraction of correct letters at each length, by greedy search."""
    run = train_once(trial, config)
    numbers = {}
    for length, name in zip(LENGTHS, ACCURACIES, strict=True):
        examples = strings_to_test(_CORPUS, length, trial.settings.tests)
        sources = [example.source for example in examples]
        outputs = run.translate(sources, decoding=GreedyConfig(), attention=False)
        numbers[name] = letter_accuracy(
            [output.text for output in outputs], [example.target for example in examples]
        )
    return numbers


def plot_copying(results: Results, lines: Sequence[str], bars: Sequence[str]) -> list[Chart]:
    """Accuracy by length for the conditions in `lines`, and at the longest for those in `bars`."""
    return [
        LineChart(
            "letters to copy",
            "fraction of correct letters",
            [
                Series(condition, LENGTHS, results.curve(condition, ACCURACIES))
                for condition in lines
            ],
        ),
        BarChart(
            f"fraction of correct letters, {LONGEST} letters to copy",
            bars,
            [results.over_seeds(condition, ACCURACIES[-1]) for condition in bars],
        ),
    ]
