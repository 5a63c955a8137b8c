"""Tests the claim: several attention heads can attend to several distant positions in one step.

A single head can only average the positions.
"""

import statistics
import string
from dataclasses import dataclass
from pathlib import Path
from random import Random

from seqloom.config.schema.recipe import RunConfig
from seqloom.core.storage import storage_errors, write_file
from seqloom.lab.charts import condition_lines, line_over_conditions
from seqloom.lab.claim import Trial, declare_claim
from seqloom.lab.models.trained_models import (
    Tables,
    build_recipe,
    learning_curve,
    train_once,
    training_tables,
)
from seqloom.lab.results import Numbers, Results
from seqloom.lab.verdict import Effect, Verdict, conclude
from seqloom.viz.chart import Chart

HEADS = {"1 head": 1, "4 heads": 4, "8 heads": 8, "16 heads": 16}
ONE_HEAD, FOUR_HEADS, EIGHT_HEADS = "1 head", "4 heads", "8 heads"
ALPHABET_SIZE, STRINGS, WORDS = 4, 3, 4
"""Number of different letters, number of strings, and number of letters per string, which is also
the number of words in the target."""
EVALUATIONS = 10
"""Number of evaluations during training."""
ACCURACIES = [f"accuracy after {tenth} tenths" for tenth in range(1, EVALUATIONS + 1)]


@dataclass(frozen=True)
class HeadsSettings:
    """Sizes of the experiment.

    length: number of tokens of each of the three strings in a source. A target word combines
            one letter of each string. In longer strings, these letters are farther apart
    rate:   learning rate
    tests:  number of test examples
    """

    length: int
    examples: int
    steps: int
    width: int
    rate: float
    batch_tokens: int
    tests: int


def draw_zip_pair(random: Random, length: int) -> tuple[str, str]:
    """Draw a random source and its target.

    The source consists of three strings of four letters each. Dots fill each string up to `length`
    characters. The target consists of four words. Word t consists of letter t of each string.
    Example for length 6: ("abca..-bbad..-cadd..", "abc bba cad add").
    """
    letters = string.ascii_lowercase[:ALPHABET_SIZE]
    strings = ["".join(random.choices(letters, k=WORDS)) for _ in range(STRINGS)]
    words = ("".join(column) for column in zip(*strings, strict=True))
    return "-".join(each.ljust(length, ".") for each in strings), " ".join(words)


def _folder(trial: Trial[HeadsSettings]) -> Path:
    settings = trial.settings
    sizes = f"{settings.length}-{settings.examples}-{settings.tests}"
    return trial.models / f"zip-{sizes}-{trial.seed}"


def _write_zip_corpus(trial: Trial[HeadsSettings]) -> None:
    with storage_errors(_folder(trial)):
        _folder(trial).mkdir(parents=True, exist_ok=True)
    for split, count in (("train", trial.settings.examples), ("dev", trial.settings.tests)):
        # Training uses at most one in three hundred of the 4^12 possible sources, so the two splits
        # hardly overlap.
        random = Random(f"{split} {trial.seed}")
        pairs = [draw_zip_pair(random, trial.settings.length) for _ in range(count)]
        for name, side in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
            text = "".join(f"{line}\n" for line in side)
            write_file(_folder(trial) / f"{split}.{name}", text.encode())


def configure(trial: Trial[HeadsSettings]) -> RunConfig:
    """Return the recipe of a Transformer with one encoder layer and one decoder layer.

    The condition of the trial is the number of attention heads. The total width is the same for
    all numbers, so a model with more heads has narrower heads.
    """
    settings = trial.settings
    data: Tables = {"folder": str(_folder(trial))}
    for split in ("train", "dev"):
        sides = {"source": f"{split}.source", "target": f"{split}.target"}
        data[split] = {"kind": "parallel", **sides}
    attention = {"score": {"kind": "dot"}, "projection": "linear", "values": "learned"}
    side = {
        "kind": "transformer",
        "width": settings.width,
        "layers": 1,
        "feedforward": 2 * settings.width,
        "dropout": 0.0,
        "attention": {**attention, "heads": HEADS[trial.condition], "output_projection": True},
    }
    training = training_tables(settings.steps, trial.seed, settings.rate, settings.batch_tokens)
    return build_recipe(
        {
            "task": {"scores": ["token-accuracy"]},
            "data": data,
            "text": {
                "tokenizer": {"kind": "characters"},
                "target_tokenizer": {"kind": "whitespace"},
            },
            "model": {"encoder": side, "decoder": side},
            "training": {
                **training,
                "evaluate_every": settings.steps // EVALUATIONS,
                "evaluate_examples": settings.tests,
                "stopping": {"score": "token-accuracy"},
            },
        }
    )


def measure(trial: Trial[HeadsSettings]) -> Numbers:
    """Measure the word accuracy in percent at each evaluation during training, and its mean."""
    _write_zip_corpus(trial)
    run = train_once(trial, configure(trial))
    curve = [value for _, value in learning_curve(run, "token-accuracy")]
    return {
        **dict(zip(ACCURACIES, curve, strict=True)),
        "mean": statistics.fmean(curve),
        "final": curve[-1],
    }


def judge(results: Results) -> Verdict:
    return conclude(
        *(
            Effect(
                f"{condition} predict more words correctly than one head, by",
                results.difference("mean", condition, ONE_HEAD),
                unit="percentage points",
            )
            for condition in (FOUR_HEADS, EIGHT_HEADS)
        )
    )


def plot(results: Results) -> list[Chart]:
    fractions = [tenth / EVALUATIONS for tenth in range(1, EVALUATIONS + 1)]
    label = "correct words in percent"
    axes = {"logarithmic_x": True, "zero": False}
    means = ("heads", f"{label}, mean over the training")
    return [
        line_over_conditions(results, means, "Transformer", HEADS, "mean", **axes),
        condition_lines(
            results, ("fraction of the training", label), tuple(HEADS), fractions, ACCURACIES
        ),
    ]


CLAIM = declare_claim(
    "heads",
    conditions=tuple(HEADS),
    sizes=HeadsSettings,
    measure=measure,
    judge=judge,
    plot=plot,
)
