"""Several heads look at several places at once; a single one has to mix them."""

import statistics
import string
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

from seqloom.config.schema.decoding import GreedyConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.storage import storage_errors, write_file
from seqloom.lab.claim import Claim, Column, Figure, Published, Trial
from seqloom.lab.experiment import Tables, learning_curve, recipe, trained, training
from seqloom.lab.results import Numbers, Results
from seqloom.lab.translators import BUNDLED, SUBWORDS, unseen_sentences
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.metrics.bleu import bleu
from seqloom.viz.chart import Chart, LineChart, Series

HEADS = {"1 head": 1, "4 heads": 4, "8 heads": 8, "16 heads": 16, "32 heads": 32}
ONE, FEW, MANY, MOST = "1 head", "4 heads", "8 heads", "32 heads"
LETTERS, STRINGS, LONG = 4, 3, 4
"""Strings that are zipped, how many of them, and how long each is."""


LOOKS = 10
"""Evaluations on the way."""
MOMENTS = [f"right after {tenth} tenths" for tenth in range(1, LOOKS + 1)]


@dataclass(frozen=True)
class Settings:
    task: Literal["zip", "sentences"]
    examples: int
    steps: int
    width: int
    layers: int
    rate: float
    batch_tokens: int
    tests: int


def zipped(draw: Random) -> tuple[str, str]:
    """("abca-bbad-cadd", "abc bba cad add"): word t is letter t of each string."""
    strings = [draw.choices(string.ascii_lowercase[:LETTERS], k=LONG) for _ in range(STRINGS)]
    words = ("".join(column) for column in zip(*strings, strict=True))
    return "-".join("".join(one) for one in strings), " ".join(words)


def _folder(trial: Trial[Settings]) -> Path:
    return trial.models / f"zip-{trial.settings.examples}-{trial.settings.tests}-{trial.seed}"


def _write(trial: Trial[Settings]) -> None:
    with storage_errors(_folder(trial)):
        _folder(trial).mkdir(parents=True, exist_ok=True)
    for split, count in (("train", trial.settings.examples), ("dev", trial.settings.tests)):
        # Of 4^12 sources, training sees one in two thousand at most: hardly one that is tested.
        draw = Random(f"{split} {trial.seed}")
        pairs = [zipped(draw) for _ in range(count)]
        for name, side in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
            text = "".join(f"{line}\n" for line in side)
            write_file(_folder(trial) / f"{split}.{name}", text.encode())


def configure(trial: Trial[Settings]) -> RunConfig:
    """Transformers of one width, which more heads share among them."""
    settings = trial.settings
    if settings.task == "sentences":
        data, text = BUNDLED, SUBWORDS
    else:
        data = {"folder": str(_folder(trial))}
        for split in ("train", "dev"):
            sides = {"source": f"{split}.source", "target": f"{split}.target"}
            data[split] = {"kind": "parallel", **sides}
        text = {
            "tokenizer": {"kind": "characters"},
            "target_tokenizer": {"kind": "whitespace"},
        }
    attention = {"score": {"kind": "dot"}, "projection": "linear", "values": "learned"}
    side = {
        "kind": "transformer",
        "width": settings.width,
        "layers": settings.layers,
        "feedforward": 2 * settings.width,
        "dropout": 0.1 if settings.task == "sentences" else 0.0,
        "attention": {**attention, "heads": HEADS[trial.condition], "merge": True},
    }
    how = training(settings.steps, trial.seed, settings.rate, settings.batch_tokens)
    task: Tables = {}
    if settings.task == "zip":
        how["evaluate_every"] = settings.steps // LOOKS
        how["evaluate_examples"] = settings.tests
        how["stopping"] = {"score": "token-accuracy"}
        task = {"scores": ["token-accuracy"]}
    model = {"encoder": side, "decoder": side}
    return recipe({"task": task, "data": data, "text": text, "model": model, "training": how})


def measure(trial: Trial[Settings]) -> Numbers:
    """BLEU at the end, or the share of right words in percent as a mean of ten moments."""
    settings = trial.settings
    if settings.task == "zip":
        _write(trial)
    run = trained(trial, configure(trial))
    if settings.task == "zip":
        curve = [value for _, value in learning_curve(run, "token-accuracy")]
        return {**dict(zip(MOMENTS, curve, strict=True)), "score": statistics.fmean(curve)}
    examples = unseen_sentences(run, settings.tests)
    sources = [one.source for one in examples]
    found = run.translate(sources, decoding=GreedyConfig(), attention=False)
    return {"score": bleu([one.text for one in found], [one.references for one in examples]).value}


def judge(results: Results) -> Verdict:
    return conclude(
        *(
            Effect(
                f"{several} are ahead of a single one by",
                results.difference("score", several, ONE),
                unit="points",
            )
            for several in (FEW, MANY)
        )
    )


def plot(results: Results) -> list[Chart]:
    counts = list(HEADS.values())
    curve = [results.over_seeds(one, "score") for one in HEADS]
    label = "right words in percent, or BLEU"
    series = [Series("Transformer", counts, curve)]
    charts: list[Chart] = [LineChart("heads", label, series, logarithmic_x=True, zero=False)]
    if MOMENTS[0] in results.measurements[0].numbers:
        tenths = [tenth / LOOKS for tenth in range(1, LOOKS + 1)]
        learning = [Series(one, tenths, results.curve(one, MOMENTS)) for one in HEADS]
        charts.append(LineChart("share of the training", "right words in percent", learning))
    return charts


CLAIM = Claim(
    name="heads",
    sentence="Several heads are better than one of the same width: a softmax raises the largest "
    "score and mutes the others, so a single head sees little more than one place at a time.",
    source="L4 §2 (d) (what is the benefit of multiple heads?); L2, What is attention?",
    setup="Transformers of one width whose heads share it: 1 head of 64 numbers up to 32 heads of "
    "2. Small: three strings of four letters are zipped, so that every word to be written is made "
    "of letters from three places; one layer on each side, and the score is the share of right "
    "words in percent, averaged over ten moments of the training. Full: German to English "
    "sentences of Tatoeba, and the score is BLEU. Greedy search.",
    confirms="4 heads and 8 heads score higher than one.",
    refutes="4 or 8 heads score lower than one with every seed.",
    conditions=tuple(HEADS),
    sizes={
        "tiny": Settings(
            "zip", 60, steps=10, width=32, layers=1, rate=4e-3, batch_tokens=512, tests=2
        ),
        "small": Settings(
            "zip", 8_000, steps=300, width=64, layers=1, rate=4e-3, batch_tokens=512, tests=100
        ),
        "full": Settings(
            "sentences",
            0,
            steps=2_000,
            width=256,
            layers=3,
            rate=1e-3,
            batch_tokens=4_096,
            tests=1_000,
        ),
    },
    measure=measure,
    judge=judge,
    plot=plot,
    columns=(Column("score", "score", ".1f"),),
    published=(
        Published(
            where="Vaswani et al. 2017, table 3 (A)",
            what="BLEU, English to German, Transformers of width 512",
            figures=tuple(
                Figure(name, value, name, "score")
                for name, value in zip(HEADS, (24.9, 25.5, 25.8, 25.8, 25.4), strict=True)
            ),
        ),
    ),
)
