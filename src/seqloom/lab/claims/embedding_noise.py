"""Noise on the vectors of words is the augmentation that text allows: it regularises."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from seqloom.config.schema.corpora import BundledConfig
from seqloom.config.schema.decoding import GreedyConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.storage import storage_errors, write_file
from seqloom.data.bundled import read_bundled
from seqloom.data.example import Example
from seqloom.lab.claim import Claim, Column, Trial
from seqloom.lab.experiment import Tables, recipe, trained, training
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.metrics.bleu import bleu
from seqloom.runs.run import Run
from seqloom.viz.chart import Chart, LineChart, Series

NOISES = {"no noise": 0.0, "noise 0.3": 0.3, "noise 1": 1.0}
WITHOUT, SOME, MUCH = NOISES
SEEN, UNSEEN, GOOD = "perplexity, learned from", "perplexity, unseen", "BLEU"
_CORPUS = BundledConfig(source="de", target="en")
_FILES: Tables = {"kind": "parallel", "source": "de", "target": "en"}


@dataclass(frozen=True)
class Settings:
    examples: int
    """Sentences to learn from: few, so that there is something to regularise."""
    steps: int
    width: int
    pieces: int
    tests: int


def _folder(trial: Trial[Settings]) -> Path:
    return trial.models / f"tatoeba-{trial.settings.examples}-{trial.seed}"


def configure(trial: Trial[Settings]) -> RunConfig:
    """A GRU with attention and nothing else that regularises."""
    settings = trial.settings
    embedding = {"kind": "learned", "noise": NOISES[trial.condition]}
    shared = {"kind": "recurrent", "width": settings.width, "embedding": embedding}
    attention = {"score": {"kind": "dot"}, "projection": "linear"}
    return recipe(
        {
            "data": {
                "folder": str(_folder(trial)),
                "train": _FILES,
                "dev": {"kind": "bundled", "source": "de", "target": "en"},
            },
            "text": {"tokenizer": {"kind": "subwords", "size": settings.pieces}},
            "model": {"encoder": shared, "decoder": {**shared, "attention": attention}},
            "training": training(settings.steps, trial.seed, 4e-3, batch_tokens=1_024),
        }
    )


def _few(trial: Trial[Settings]) -> list[Example]:
    """The sentences to learn from, other ones with each seed, in files."""
    everything = list(read_bundled(_CORPUS, "train"))
    few = Random(trial.seed).sample(everything, trial.settings.examples)
    with storage_errors(_folder(trial)):
        _folder(trial).mkdir(parents=True, exist_ok=True)
    for name, side in (("de", [one.source for one in few]), ("en", [one.target for one in few])):
        write_file(_folder(trial) / name, "".join(f"{line}\n" for line in side).encode())
    return few


def measure(trial: Trial[Settings]) -> Numbers:
    """How probable the targets are that were learned from, and unseen ones."""
    few = _few(trial)
    run = trained(trial, configure(trial))
    unseen = Random(0).sample(list(read_bundled(_CORPUS, "test")), trial.settings.tests)
    found = run.translate([one.source for one in unseen], decoding=GreedyConfig(), attention=False)
    return {
        SEEN: _perplexity(run, few[: trial.settings.tests]),
        UNSEEN: _perplexity(run, unseen),
        GOOD: bleu([one.text for one in found], [one.references for one in unseen]).value,
    }


def _perplexity(run: Run, examples: Sequence[Example]) -> float:
    """Of a piece, END included."""
    scored = run.score(
        [one.source for one in examples], [one.target for one in examples], attention=False
    )
    pieces = [value for one in scored for value in one.log_probabilities]
    return math.exp(-sum(pieces) / len(pieces))


def judge(results: Results) -> Verdict:
    gaps = [
        [
            math.log(unseen / seen)
            for unseen, seen in zip(
                results.over_seeds(one, UNSEEN), results.over_seeds(one, SEEN), strict=True
            )
        ]
        for one in (WITHOUT, SOME)
    ]
    return conclude(
        Effect(
            "noise of 0.3 brings unseen sentences nearer to those learned from, in log perplexity "
            "by",
            [one - other for one, other in zip(*gaps, strict=True)],
        ),
        Effect(
            "with noise of 0.3 the perplexity of unseen sentences is lower by",
            results.difference(UNSEEN, WITHOUT, SOME),
        ),
    )


def plot(results: Results) -> list[Chart]:
    def line(name: str) -> LineChart:
        values = [results.over_seeds(one, name) for one in NOISES]
        series = [Series("GRU with attention", list(NOISES.values()), values)]
        label = "standard deviation of the noise (entries of a vector begin with 1)"
        return LineChart(label, name, series, zero=False)

    return [line(UNSEEN), line(SEEN)]


CLAIM = Claim(
    name="embedding-noise",
    sentence="Random noise on the vectors of words regularises: learned from few sentences, a model "
    "with it knows them less by heart and does better on others.",
    source="L0 §1.3.4 (how do we do data augmentation for language data?)",
    setup="A GRU with attention learns from few German sentences of Tatoeba and their English "
    "translations, many times over, with Gaussian noise on the embeddings of both sides or without, "
    "and with no other regularisation. Measured at the end: the perplexity of sentences that were "
    "learned from and of unseen ones, and BLEU of the latter by greedy search.",
    confirms="With noise of standard deviation 0.3 the gap between the two perplexities is "
    "narrower, and unseen sentences have the lower perplexity.",
    refutes="One of these is the other way round with every seed.",
    conditions=tuple(NOISES),
    sizes={
        "tiny": Settings(examples=60, steps=2, width=8, pieces=100, tests=2),
        "small": Settings(examples=400, steps=250, width=96, pieces=400, tests=300),
        "full": Settings(examples=5_000, steps=2_000, width=256, pieces=2_000, tests=1_000),
    },
    measure=measure,
    judge=judge,
    plot=plot,
    columns=(
        Column(SEEN, SEEN, ".3f"),
        Column(UNSEEN, UNSEEN, ".1f"),
        Column(GOOD, GOOD, ".1f"),
    ),
)
