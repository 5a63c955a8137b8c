"""Tests the claim: attention needs positional encodings.

Only some encodings work for positions that did not occur in training.
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import TypeAdapter

from seqloom.config.extensions.unions import ByKind
from seqloom.config.schema.decoding import GreedyConfig
from seqloom.config.schema.embedding import PositionsConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.inference.run import Run
from seqloom.lab.charts import condition_bars, condition_lines
from seqloom.lab.claim import Trial, declare_claim
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
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.nn.build import build_positions
from seqloom.viz.chart import Chart

TRAINED, LONGEST = 12, 20
"""Number of letters of the longest strings in training, and of the longest strings in the test."""
LENGTHS = (4, 8, TRAINED, 16, LONGEST)
ACCURACIES = [f"accuracy at {length}" for length in LENGTHS]
SEEN, BEYOND = "accuracy, seen positions", "accuracy, positions beyond training"
WIDTHS = {length: f"width for {length} positions" for length in (32, 64)}
CORPUS = letter_corpus("copy", 1, TRAINED, symbols=10)
NO_POSITIONS, ONE_HOT, LEARNED = "no positions", "one-hot appended", "learned added"
SINES_APPENDED, SINES_ADDED, ROTARY = "sines appended", "sines added", "rotary"
GRU = "GRU without positions"
ENCODINGS = (ONE_HOT, LEARNED, SINES_APPENDED, SINES_ADDED)
"""The encodings from which the decoder can find out the position of an encoder state."""
CONDITIONS = (NO_POSITIONS, *ENCODINGS, ROTARY, GRU)


@dataclass(frozen=True)
class PositionsSettings:
    """Sizes of the experiment.

    layers: number of layers of a Transformer. The GRU always has one.
    tests:  number of test strings of each length
    """

    examples: int
    steps: int
    width: int
    layers: int
    tests: int


def position_tables(condition: str, max_length: int) -> Tables:
    """Return the recipe settings of a positional encoding.

    condition:  name of the variant of the experiment, which determines the encoding
    max_length: number of positions that the encoding must support
    """
    tables: dict[str, Tables] = {
        ONE_HOT: {"kind": "one-hot", "max_length": max_length},
        LEARNED: {"kind": "learned", "max_length": max_length},
        SINES_APPENDED: {"kind": "sinusoidal", "join": "append", "width": 32},
        SINES_ADDED: {"kind": "sinusoidal", "join": "add"},
        ROTARY: {"kind": "rotary"},
    }
    return tables.get(condition, {"kind": "none"})


def configure(trial: Trial[PositionsSettings]) -> RunConfig:
    """Return the recipe of a Transformer or GRU that copies strings of letters.

    Encoder and decoder use the same positional encoding, or both use none.
    """
    settings = trial.settings
    positions = position_tables(trial.condition, 32)
    attention: Tables = {"score": {"kind": "dot"}, "projection": "linear"}
    if trial.condition == GRU:
        shared = {"kind": "recurrent", "positions": positions}
        encoder = {**shared, "width": settings.width // 2}
        decoder = {**shared, "width": settings.width, "attention": attention}
    else:
        attention |= {"values": "learned", "heads": 4, "output_projection": True}
        encoder = decoder = {
            "kind": "transformer",
            "width": settings.width,
            "layers": settings.layers,
            "feedforward": 2 * settings.width,
            "dropout": 0.0,
            "attention": attention,
            "positions": positions,
        }
    return build_recipe(
        {
            "data": {
                "train": {**CORPUS, "examples": settings.examples, "seed": trial.seed},
                "dev": {**CORPUS, "examples": 20},
            },
            "text": {"tokenizer": {"kind": "characters"}},
            "model": {"encoder": encoder, "decoder": decoder},
            "training": training_tables(settings.steps, trial.seed, 3e-3, batch_tokens=1_024),
        }
    )


def measure(trial: Trial[PositionsSettings]) -> Numbers:
    """Measure the fraction of correctly copied letters for each string length.

    If the positional encoding is appended to the embeddings, the result also contains its width.
    """
    run = train_once(trial, configure(trial))
    numbers: dict[str, float] = {}
    for length, name in zip(LENGTHS, ACCURACIES, strict=True):
        outputs, targets = _copy_strings(run, length, trial.settings.tests)
        numbers[name] = letter_accuracy(outputs, targets)
        if length == TRAINED:
            numbers[SEEN] = numbers[name]
        if length == LONGEST:
            numbers[BEYOND] = letter_accuracy(
                [output[TRAINED:] for output in outputs], [target[TRAINED:] for target in targets]
            )
    if trial.condition in (ONE_HOT, SINES_APPENDED):
        numbers |= {name: encoding_width(trial.condition, n) for n, name in WIDTHS.items()}
    return numbers


def _copy_strings(run: Run, length: int, count: int) -> tuple[list[str], list[str]]:
    """Let the model copy test strings of one length. Returns the outputs and the targets.

    The search must generate exactly as many letters as the target has. Otherwise, a model could end
    every output at TRAINED letters, the maximum length in training, and later positions could not
    be measured.
    """
    examples = strings_to_test(CORPUS, length, count)
    outputs = run.translate(
        [example.source for example in examples],
        decoding=GreedyConfig(min_length=length, max_length=length + 1),
        attention=False,
    )
    return [output.text for output in outputs], [example.target for example in examples]


def encoding_width(condition: str, positions: int) -> int:
    """Return how many numbers a positional encoding appends to each embedding.

    condition: name of the variant of the experiment, which determines the encoding
    positions: number of positions that the encoding must support
    """
    adapter: TypeAdapter[PositionsConfig] = TypeAdapter(Annotated[PositionsConfig, ByKind()])
    config = adapter.validate_python(position_tables(condition, positions))
    return build_positions(config, width=0).output_width(0)


def judge(results: Results) -> Verdict:
    seen = [results.over_seeds(condition, SEEN) for condition in ENCODINGS]
    worst = [min(values) for values in zip(*seen, strict=True)]
    beyond = [
        Effect(
            f"at positions beyond training, {sines} copy more letters correctly than {other}, by",
            results.difference(BEYOND, sines, other),
            format_spec=".1%",
        )
        for sines in (SINES_APPENDED, SINES_ADDED)
        for other in (ONE_HOT, LEARNED)
    ]
    widths = {
        condition: [
            double / single
            for single, double in zip(
                *(results.over_seeds(condition, name) for name in WIDTHS.values()), strict=True
            )
        ]
        for condition in (ONE_HOT, SINES_APPENDED)
    }
    return conclude(
        Effect(
            f"at {TRAINED} letters, the worst of four encodings copies more letters correctly than "
            "no positions, by",
            [
                first - second
                for first, second in zip(worst, results.over_seeds(NO_POSITIONS, SEEN), strict=True)
            ],
            format_spec=".1%",
        ),
        Effect(
            "for twice as many positions, the width of one-hot vectors grows by a factor of",
            widths[ONE_HOT],
            above=1.9,
        ),
        Effect(
            "for twice as many positions, the width of sines grows by a factor of",
            widths[SINES_APPENDED],
            below=1.1,
        ),
        *beyond,
    )


def plot(results: Results) -> list[Chart]:
    # Six lines have six different colours. The bars include the GRU as well.
    transformers = [condition for condition in CONDITIONS if condition != GRU]
    labels = (f"letters to copy, training up to {TRAINED}", "fraction of correct letters")
    bars = f"fraction of correct letters after the first {TRAINED}"
    return [
        condition_lines(results, labels, transformers, LENGTHS, ACCURACIES),
        condition_bars(results, bars, CONDITIONS, BEYOND),
    ]


CLAIM = declare_claim(
    "positions",
    conditions=CONDITIONS,
    sizes=PositionsSettings,
    measure=measure,
    judge=judge,
    plot=plot,
)
