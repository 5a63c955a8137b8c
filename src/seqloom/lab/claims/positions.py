"""Self-attention without positions sees a set: it can sort, and it cannot reverse."""

from dataclasses import dataclass

from seqloom.config.schema.decoding import GreedyConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.lab.claim import Claim, Column, Trial
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
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.viz.chart import BarChart, Chart

LONGEST = 6
CORPORA = {task: letters(task, 1, LONGEST, symbols=10) for task in ("reverse", "sort")}
BARE, CHAIN = "Transformer, none", "GRU, none"
POSITIONS: dict[str, tuple[str, Tables]] = {
    BARE: ("transformer", {"kind": "none"}),
    "Transformer, one-hot appended": ("transformer", {"kind": "one-hot", "max_length": 16}),
    "Transformer, sines appended": ("transformer", {"kind": "sinusoidal", "join": "append"}),
    "Transformer, sines added": ("transformer", {"kind": "sinusoidal", "join": "add"}),
    "Transformer, learned added": ("transformer", {"kind": "learned", "max_length": 16}),
    CHAIN: ("recurrent", {"kind": "none"}),
    "GRU, sines appended": ("recurrent", {"kind": "sinusoidal", "join": "append"}),
}
TOLD = [name for name, (kind, _) in POSITIONS.items() if kind == "transformer" and name != BARE]


@dataclass(frozen=True)
class Settings:
    examples: int
    steps: int
    width: int
    layers: int
    """Of a Transformer; a GRU has one."""
    tests: int


def configure(trial: Trial[Settings], task: str = "reverse") -> RunConfig:
    """Both sides are told the positions in the same way, or not at all."""
    settings, corpus = trial.settings, CORPORA[task]
    kind, positions = POSITIONS[trial.condition]
    if kind == "transformer":
        size: Tables = {
            "layers": settings.layers,
            "feedforward": 2 * settings.width,
            "dropout": 0.0,
        }
        attention = {"score": {"kind": "dot"}, "projection": "linear", "values": "learned"}
        size["attention"] = {**attention, "heads": 4, "merge": True}
        encoder = decoder = {"kind": kind, "width": settings.width, **size, "positions": positions}
    else:
        shared = {"kind": kind, "positions": positions}
        encoder = {**shared, "width": settings.width // 2}
        attention = {"score": {"kind": "dot"}, "projection": "linear"}
        decoder = {**shared, "width": settings.width, "attention": attention}
    return recipe(
        {
            "data": {
                "train": {**corpus, "examples": settings.examples, "seed": trial.seed},
                "dev": {**corpus, "examples": 20},
            },
            "text": {"tokenizer": {"kind": "characters"}},
            "model": {"encoder": encoder, "decoder": decoder},
            "training": training(settings.steps, trial.seed, 3e-3, batch_tokens=1_024),
        }
    )


def measure(trial: Trial[Settings]) -> Numbers:
    """The share of right letters: of strings to be reversed, and where nobody is told the
    positions also of strings to be sorted."""
    numbers = {}
    for task, corpus in CORPORA.items():
        if task == "sort" and trial.condition not in (BARE, CHAIN):
            continue
        run = trained(trial, configure(trial, task))
        pairs = unseen(corpus, LONGEST, trial.settings.tests)
        sources = [one.source for one in pairs]
        found = run.translate(sources, decoding=GreedyConfig(), attention=False)
        numbers[task] = right_letters([one.text for one in found], [one.target for one in pairs])
    return numbers


def judge(results: Results) -> Verdict:
    told = [results.over_seeds(one, "reverse") for one in TOLD]
    worst = [min(values) for values in zip(*told, strict=True)]
    bare = results.over_seeds(BARE, "reverse")
    return conclude(
        Effect(
            "a Transformer told the positions, in the worst of four ways, reverses more letters "
            "than one without, by",
            [one - other for one, other in zip(worst, bare, strict=True)],
            form=".1%",
        ),
        Effect(
            "without positions, a Transformer sorts more letters than it reverses, by",
            results.between((BARE, "sort"), (BARE, "reverse")),
            form=".1%",
        ),
        Effect(
            "without positions, a recurrent network reverses more letters than a Transformer, by",
            results.difference("reverse", CHAIN, BARE),
            form=".1%",
        ),
    )


def plot(results: Results) -> list[Chart]:
    def bars(task: str, conditions: tuple[str, ...]) -> BarChart:
        values = [results.over_seeds(one, task) for one in conditions]
        return BarChart(f"share of right letters, {LONGEST} letters to {task}", conditions, values)

    return [bars("reverse", tuple(POSITIONS)), bars("sort", (BARE, CHAIN))]


CLAIM = Claim(
    name="positions",
    sentence="Attention by itself does not know what stands where: without positional encodings a "
    "Transformer can learn what depends on the set of its inputs alone, and not what depends on "
    "their order. Every positional encoding mends it; a recurrent network, which counts, needs "
    "none.",
    source="L4 §1 (d) and (e) (one-hot and sine positional encodings)",
    setup="Transformers and a GRU with attention, with positions of each kind or without, learn to "
    "reverse strings of 1 to 6 letters; those without also learn to sort them, for which the order "
    "of the input does not matter. Same number of steps for all. Tested on unseen strings of 6 "
    "letters by greedy search.",
    confirms="A Transformer without positions reverses fewer letters than each of those with, fewer "
    "than it sorts, and fewer than a GRU without positions.",
    refutes="One of these is the other way round with every seed.",
    conditions=tuple(POSITIONS),
    sizes={
        "tiny": Settings(examples=60, steps=2, width=8, layers=1, tests=2),
        "small": Settings(examples=8_000, steps=300, width=64, layers=1, tests=200),
        "full": Settings(examples=100_000, steps=1_500, width=128, layers=2, tests=1_000),
    },
    measure=measure,
    judge=judge,
    plot=plot,
    columns=(Column("reverse", "reversed", ".1%"), Column("sort", "sorted", ".1%")),
)
