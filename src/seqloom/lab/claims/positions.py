"""Self-attention without positions treats its input as a set.

Therefore it can learn to sort a string, but not to reverse it.
"""

from dataclasses import dataclass

from seqloom.config.schema.decoding import GreedyConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.lab.claim import Claim, Column, Trial
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
from seqloom.viz.chart import BarChart, Chart

LONGEST = 6
CORPORA = {task: letter_corpus(task, 1, LONGEST, symbols=10) for task in ("reverse", "sort")}
NO_POSITIONS, GRU = "Transformer without positions", "GRU without positions"
POSITIONS: dict[str, tuple[str, Tables]] = {
    NO_POSITIONS: ("transformer", {"kind": "none"}),
    "Transformer, one-hot appended": ("transformer", {"kind": "one-hot", "max_length": 16}),
    "Transformer, sines appended": ("transformer", {"kind": "sinusoidal", "join": "append"}),
    "Transformer, sines added": ("transformer", {"kind": "sinusoidal", "join": "add"}),
    "Transformer, learned added": ("transformer", {"kind": "learned", "max_length": 16}),
    GRU: ("recurrent", {"kind": "none"}),
    "GRU, sines appended": ("recurrent", {"kind": "sinusoidal", "join": "append"}),
}
WITH_POSITIONS = [
    name for name, (kind, _) in POSITIONS.items() if kind == "transformer" and name != NO_POSITIONS
]


@dataclass(frozen=True)
class PositionsSettings:
    """Sizes of the experiment.

    layers: number of layers of a Transformer. The GRU always has one.
    tests:  number of test strings
    """

    examples: int
    steps: int
    width: int
    layers: int
    tests: int


def configure(trial: Trial[PositionsSettings], task: str = "reverse") -> RunConfig:
    """Return the recipe. Encoder and decoder use the same positional encoding, or both use none."""
    settings, corpus = trial.settings, CORPORA[task]
    kind, positions = POSITIONS[trial.condition]
    if kind == "transformer":
        size: Tables = {
            "layers": settings.layers,
            "feedforward": 2 * settings.width,
            "dropout": 0.0,
        }
        attention = {"score": {"kind": "dot"}, "projection": "linear", "values": "learned"}
        size["attention"] = {**attention, "heads": 4, "output_projection": True}
        encoder = decoder = {"kind": kind, "width": settings.width, **size, "positions": positions}
    else:
        shared = {"kind": kind, "positions": positions}
        encoder = {**shared, "width": settings.width // 2}
        attention = {"score": {"kind": "dot"}, "projection": "linear"}
        decoder = {**shared, "width": settings.width, "attention": attention}
    return build_recipe(
        {
            "data": {
                "train": {**corpus, "examples": settings.examples, "seed": trial.seed},
                "dev": {**corpus, "examples": 20},
            },
            "text": {"tokenizer": {"kind": "characters"}},
            "model": {"encoder": encoder, "decoder": decoder},
            "training": training_tables(settings.steps, trial.seed, 3e-3, batch_tokens=1_024),
        }
    )


def measure(trial: Trial[PositionsSettings]) -> Numbers:
    """Measure letter accuracy for reversed strings.

    For the models without positional encodings, also measure letter accuracy for sorted strings.
    """
    numbers = {}
    for task, corpus in CORPORA.items():
        if task == "sort" and trial.condition not in (NO_POSITIONS, GRU):
            continue
        run = train_once(trial, configure(trial, task))
        examples = strings_to_test(corpus, LONGEST, trial.settings.tests)
        sources = [example.source for example in examples]
        outputs = run.translate(sources, decoding=GreedyConfig(), attention=False)
        numbers[task] = letter_accuracy(
            [output.text for output in outputs], [example.target for example in examples]
        )
    return numbers


def judge(results: Results) -> Verdict:
    with_positions = [results.over_seeds(condition, "reverse") for condition in WITH_POSITIONS]
    worst = [min(values) for values in zip(*with_positions, strict=True)]
    without = results.over_seeds(NO_POSITIONS, "reverse")
    return conclude(
        Effect(
            "the worst of four Transformers with positions reverses more letters correctly than "
            "the one without, by",
            [first - second for first, second in zip(worst, without, strict=True)],
            format_spec=".1%",
        ),
        Effect(
            "without positions, a Transformer sorts more letters correctly than it reverses, by",
            results.between((NO_POSITIONS, "sort"), (NO_POSITIONS, "reverse")),
            format_spec=".1%",
        ),
        Effect(
            "without positions, a recurrent network reverses more letters correctly than a "
            "Transformer, by",
            results.difference("reverse", GRU, NO_POSITIONS),
            format_spec=".1%",
        ),
    )


def plot(results: Results) -> list[Chart]:
    def bars(task: str, conditions: tuple[str, ...]) -> BarChart:
        values = [results.over_seeds(condition, task) for condition in conditions]
        return BarChart(
            f"fraction of correct letters, {LONGEST} letters to {task}", conditions, values
        )

    return [bars("reverse", tuple(POSITIONS)), bars("sort", (NO_POSITIONS, GRU))]


CLAIM = Claim(
    name="positions",
    sentence="Attention alone has no notion of position: without positional encodings a "
    "Transformer can learn what depends on the set of its inputs, but not what depends on their "
    "order. Every positional encoding solves this; a recurrent network needs none.",
    source="L4 §1 (d) and (e) (one-hot and sine positional encodings)",
    setup="Transformers and a GRU with attention, with positions of each kind or without, learn to "
    "reverse strings of 1 to 6 letters. Those without positions also learn to sort them, for which "
    "the order of the input does not matter. All train for the same number of steps. Tested on "
    "unseen strings of 6 letters by greedy search.",
    confirms="A Transformer without positions reverses fewer letters correctly than each of those "
    "with positions, fewer than it sorts, and fewer than a GRU without positions.",
    refutes="The opposite of one of these statements holds with every seed.",
    conditions=tuple(POSITIONS),
    sizes={
        "tiny": PositionsSettings(examples=60, steps=2, width=8, layers=1, tests=2),
        "small": PositionsSettings(examples=8_000, steps=300, width=64, layers=1, tests=200),
        "full": PositionsSettings(examples=100_000, steps=1_500, width=128, layers=2, tests=1_000),
    },
    measure=measure,
    judge=judge,
    plot=plot,
    columns=(Column("reverse", "reversed", ".1%"), Column("sort", "sorted", ".1%")),
)
