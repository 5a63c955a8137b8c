"""Several heads can attend to different positions in the same step.

A single head can only average the positions.
"""

import statistics
import string
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

from seqloom.config.schema.decoding import GreedyConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.storage import storage_errors, write_file
from seqloom.lab.claim import Claim, Column, PublishedFigure, PublishedResult, Trial
from seqloom.lab.models.trained_models import (
    BUNDLED,
    SUBWORDS,
    Tables,
    build_recipe,
    learning_curve,
    read_test_sentences,
    train_once,
    training_tables,
)
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.metrics.bleu import bleu
from seqloom.viz.chart import Chart, LineChart, Series

HEADS = {"1 head": 1, "4 heads": 4, "8 heads": 8, "16 heads": 16, "32 heads": 32}
ONE_HEAD, FOUR_HEADS, EIGHT_HEADS = "1 head", "4 heads", "8 heads"
ALPHABET_SIZE, STRINGS, STRING_LENGTH = 4, 3, 4
"""Zip task: number of different letters, number of strings, and number of letters per string."""
EVALUATIONS = 10
"""Number of evaluations during training."""
ACCURACIES = [f"accuracy after {tenth} tenths" for tenth in range(1, EVALUATIONS + 1)]


@dataclass(frozen=True)
class HeadsSettings:
    """Task and sizes of the experiment.

    task:  "zip" for strings of letters (see `draw_zip_pair`), "sentences" for translation
    rate:  learning rate
    tests: number of test examples
    """

    task: Literal["zip", "sentences"]
    examples: int
    steps: int
    width: int
    layers: int
    rate: float
    batch_tokens: int
    tests: int


def draw_zip_pair(random: Random) -> tuple[str, str]:
    """Draw a source and a target. Target word t consists of letter t of each source string.

    Example: ("abca-bbad-cadd", "abc bba cad add").
    """
    letters = string.ascii_lowercase[:ALPHABET_SIZE]
    strings = [random.choices(letters, k=STRING_LENGTH) for _ in range(STRINGS)]
    words = ("".join(column) for column in zip(*strings, strict=True))
    return "-".join("".join(each) for each in strings), " ".join(words)


def _folder(trial: Trial[HeadsSettings]) -> Path:
    return trial.models / f"zip-{trial.settings.examples}-{trial.settings.tests}-{trial.seed}"


def _write_zip_corpus(trial: Trial[HeadsSettings]) -> None:
    with storage_errors(_folder(trial)):
        _folder(trial).mkdir(parents=True, exist_ok=True)
    for split, count in (("train", trial.settings.examples), ("dev", trial.settings.tests)):
        # Training uses at most one in two thousand of the 4^12 possible sources, so the two splits
        # hardly overlap.
        random = Random(f"{split} {trial.seed}")
        pairs = [draw_zip_pair(random) for _ in range(count)]
        for name, side in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
            text = "".join(f"{line}\n" for line in side)
            write_file(_folder(trial) / f"{split}.{name}", text.encode())


def configure(trial: Trial[HeadsSettings]) -> RunConfig:
    """Return the recipe of a Transformer.

    Its width is the same in all conditions and is divided among the heads.
    """
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
        "attention": {**attention, "heads": HEADS[trial.condition], "output_projection": True},
    }
    training = training_tables(settings.steps, trial.seed, settings.rate, settings.batch_tokens)
    task: Tables = {}
    if settings.task == "zip":
        training["evaluate_every"] = settings.steps // EVALUATIONS
        training["evaluate_examples"] = settings.tests
        training["stopping"] = {"score": "token-accuracy"}
        task = {"scores": ["token-accuracy"]}
    model = {"encoder": side, "decoder": side}
    return build_recipe(
        {"task": task, "data": data, "text": text, "model": model, "training": training}
    )


def measure(trial: Trial[HeadsSettings]) -> Numbers:
    """Measure BLEU for the task "sentences".

    For the task "zip", return the word accuracy in percent at each evaluation during training. The
    score is the mean of these accuracies.
    """
    settings = trial.settings
    if settings.task == "zip":
        _write_zip_corpus(trial)
    run = train_once(trial, configure(trial))
    if settings.task == "zip":
        curve = [value for _, value in learning_curve(run, "token-accuracy")]
        return {**dict(zip(ACCURACIES, curve, strict=True)), "score": statistics.fmean(curve)}
    sentences = read_test_sentences(run, settings.tests)
    sources = [each.source for each in sentences]
    outputs = run.translate(sources, decoding=GreedyConfig(), attention=False)
    references = [each.references for each in sentences]
    return {"score": bleu([output.text for output in outputs], references).value}


def judge(results: Results) -> Verdict:
    return conclude(
        *(
            Effect(
                f"{condition} score higher than one head by",
                results.difference("score", condition, ONE_HEAD),
                unit="points",
            )
            for condition in (FOUR_HEADS, EIGHT_HEADS)
        )
    )


def plot(results: Results) -> list[Chart]:
    counts = list(HEADS.values())
    scores = [results.over_seeds(condition, "score") for condition in HEADS]
    label = "correct words in percent, or BLEU"
    series = [Series("Transformer", counts, scores)]
    charts: list[Chart] = [LineChart("heads", label, series, logarithmic_x=True, zero=False)]
    if ACCURACIES[0] in results.measurements[0].numbers:
        fractions = [tenth / EVALUATIONS for tenth in range(1, EVALUATIONS + 1)]
        learning = [
            Series(condition, fractions, results.curve(condition, ACCURACIES))
            for condition in HEADS
        ]
        charts.append(LineChart("fraction of the training", "correct words in percent", learning))
    return charts


CLAIM = Claim(
    name="heads",
    sentence="Several heads are better than one of the same total width: a softmax amplifies the "
    "largest score and suppresses the others, so a single head attends to little more than one "
    "position.",
    source="L4 §2 (d) (what is the benefit of multiple heads?); L2, What is attention?",
    setup="Transformers of one width, divided among 1 head of 64 dimensions up to 32 heads of 2. "
    "Small: three strings of four letters are zipped, so that every target word consists of letters "
    "from three positions; one layer on each side; the score is the percentage of correct words, "
    "averaged over ten evaluations during the training. Full: German to English sentences of "
    "Tatoeba, and the score is BLEU. Greedy search.",
    confirms="4 heads and 8 heads score higher than one.",
    refutes="4 or 8 heads score lower than one with every seed.",
    conditions=tuple(HEADS),
    sizes={
        "tiny": HeadsSettings(
            "zip", 60, steps=10, width=32, layers=1, rate=4e-3, batch_tokens=512, tests=2
        ),
        "small": HeadsSettings(
            "zip", 8_000, steps=300, width=64, layers=1, rate=4e-3, batch_tokens=512, tests=100
        ),
        "full": HeadsSettings(
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
        PublishedResult(
            where="Vaswani et al. 2017, table 3 (A)",
            what="BLEU, English to German, Transformers of width 512",
            figures=tuple(
                PublishedFigure(name, value, name, "score")
                for name, value in zip(HEADS, (24.9, 25.5, 25.8, 25.8, 25.4), strict=True)
            ),
        ),
    ),
)
