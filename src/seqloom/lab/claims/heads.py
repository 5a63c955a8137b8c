"""Several heads look at several places at once; a single one has to mix them."""

import string
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

from seqloom.config.decoding import GreedyConfig
from seqloom.config.run import RunConfig
from seqloom.core.storage import explained, write_file
from seqloom.lab.claim import Claim, Column, Figure, Published, Trial
from seqloom.lab.experiment import Tables, recipe, trained, training
from seqloom.lab.results import Numbers, Results
from seqloom.lab.translators import BUNDLED, SUBWORDS, unseen_sentences
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.metrics.bleu import bleu
from seqloom.metrics.overlap import token_accuracy
from seqloom.viz.chart import Chart, Lines, Series

HEADS = {"1 head": 1, "4 heads": 4, "8 heads": 8, "16 heads": 16, "32 heads": 32}
ONE, FEW, MANY, MOST = "1 head", "4 heads", "8 heads", "32 heads"
LETTERS, STRINGS, LONG = 5, 3, 5
"""Strings that are zipped, how many of them, and how long each is."""


@dataclass(frozen=True)
class Settings:
    task: Literal["zip", "sentences"]
    examples: int
    steps: int
    width: int
    layers: int
    tests: int


def zipped(draw: Random) -> tuple[str, str]:
    """("abcad-bbade-ccdea", "abc bbc cad ade dea"): word t is letter t of each string."""
    strings = [draw.choices(string.ascii_lowercase[:LETTERS], k=LONG) for _ in range(STRINGS)]
    words = ("".join(column) for column in zip(*strings, strict=True))
    return "-".join("".join(one) for one in strings), " ".join(words)


def _folder(trial: Trial[Settings]) -> Path:
    return trial.models / f"zip-{trial.settings.examples}-{trial.seed}"


def _write(trial: Trial[Settings]) -> None:
    draw = Random(f"train {trial.seed}")
    pairs = [zipped(draw) for _ in range(trial.settings.examples)]
    with explained(_folder(trial)):
        _folder(trial).mkdir(parents=True, exist_ok=True)
    for name, side in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
        write_file(_folder(trial) / name, "".join(f"{line}\n" for line in side).encode())


def configure(trial: Trial[Settings]) -> RunConfig:
    """Transformers of one width, which more heads share among them."""
    settings = trial.settings
    if settings.task == "sentences":
        data, text = BUNDLED, SUBWORDS
    else:
        files: Tables = {"kind": "parallel", "source": "source", "target": "target"}
        data = {"folder": str(_folder(trial)), "train": files, "dev": files | {"last_line": 20}}
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
    how = training(settings.steps, trial.seed, 2e-3)
    model = {"encoder": side, "decoder": side}
    return recipe({"data": data, "text": text, "model": model, "training": how})


def measure(trial: Trial[Settings]) -> Numbers:
    """The share of right words in percent, or BLEU."""
    settings = trial.settings
    if settings.task == "zip":
        _write(trial)
    run = trained(trial, configure(trial))
    if settings.task == "sentences":
        examples = unseen_sentences(run, settings.tests)
        sources = [one.source for one in examples]
        references = [tuple(one.references) for one in examples]
    else:
        # Of 5^15 sources, a test that training has seen is not to be expected.
        draw = Random("test")
        pairs = [zipped(draw) for _ in range(settings.tests)]
        sources, references = [one for one, _ in pairs], [(other,) for _, other in pairs]
    found = run.translate(sources, decoding=GreedyConfig(), attention=False)
    score = bleu if settings.task == "sentences" else token_accuracy
    return {"score": score([one.text for one in found], references).value}


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
    return [Lines("heads", label, series, logarithmic_x=True, zero=False)]


CLAIM = Claim(
    name="heads",
    sentence="Several heads are better than one of the same width: a softmax raises the largest "
    "score and mutes the others, so a single head sees little more than one place at a time.",
    source="L4 §2 (d) (what is the benefit of multiple heads?); L2, What is attention?",
    setup="Transformers of one width whose heads share it: 1 head of 64 numbers up to 32 heads of "
    "2. Small: three strings of five letters are zipped, so that every word to be written is made "
    "of letters from three places; one layer on each side, and the score is the share of right "
    "words in percent. Full: German to English sentences of Tatoeba, and the score is BLEU. Greedy "
    "search.",
    confirms="4 heads and 8 heads score higher than one.",
    refutes="4 or 8 heads score lower than one with every seed.",
    conditions=tuple(HEADS),
    sizes={
        "tiny": Settings("zip", examples=60, steps=2, width=32, layers=1, tests=2),
        "small": Settings("zip", examples=8_000, steps=200, width=64, layers=1, tests=200),
        "full": Settings("sentences", examples=0, steps=2_000, width=256, layers=3, tests=1_000),
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
