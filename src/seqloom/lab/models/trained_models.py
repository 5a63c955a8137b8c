"""Trains and caches the models of the experiments.

Also contains the recipes that several experiments share: GRUs that copy strings of letters, and
translation from German to English.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.toml import format_recipe
from seqloom.config.schema.corpora import SyntheticConfig
from seqloom.config.schema.decoding import DecodingConfig, GreedyConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.locks import wait_for_lock
from seqloom.core.storage import storage_errors
from seqloom.data.example import Example
from seqloom.data.readers.splits import merge_references, read_corpus, read_split
from seqloom.inference.prediction import Prediction
from seqloom.inference.run import Run, load
from seqloom.lab.charts import condition_bars, condition_lines
from seqloom.lab.claim import Column, SettingsT, Size, Trial
from seqloom.lab.results import Numbers, Results
from seqloom.metrics.error_rates import token_accuracy
from seqloom.runs.integrity import is_run
from seqloom.training.event_log import Event
from seqloom.training.loop import train
from seqloom.viz.chart import Chart

Tables = dict[str, Any]
"""Nested tables of options, as in the TOML file of a recipe."""


def train_once(trial: Trial[SettingsT], config: RunConfig) -> Run:
    """Return the trained model of a recipe.

    The first call trains the model, later calls load it. Interrupted training is resumed.
    """
    digest = hashlib.sha256(format_recipe(config).encode()).hexdigest()[:16]
    folder = trial.models / digest
    with _lock(folder):
        done = folder / "done"
        if not done.exists():
            steps = config.training.steps
            trial.progress("reading", 0.0)

            def report(event: Event) -> None:
                if event.kind == "step":
                    trial.progress("training", event.step / steps)

            summary = train(config, folder, resume=is_run(folder), report=report)
            if summary.reason == "signal":
                raise KeyboardInterrupt
            with storage_errors(done):
                done.touch()
    trial.progress("measuring", 1.0)
    return load(folder, engine="torch")


def translate_alone(run: Run, sources: Sequence[str], decoding: DecodingConfig) -> list[Prediction]:
    """Translate each source as a whole, with the search alone: no splitting and no copied text."""
    return run.translate(
        sources, decoding=decoding, attention=False, split=False, pass_through=False
    )


def learning_curve(run: Run, name: str) -> list[tuple[int, float]]:
    """Return (step, score) for every evaluation during training.

    name: name of the score, for example "exact-match"
    """
    lines = (run.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    return [(event["step"], event[name]) for event in events if event["event"] == "evaluate"]


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Lock a model folder, so that parallel processes do not train the same model twice."""
    with ExitStack() as stack:
        with storage_errors(folder):
            stack.enter_context(wait_for_lock(folder.with_name(f"{folder.name}.lock")))
        yield


def build_recipe(tables: Tables, changes: Sequence[str] = ()) -> RunConfig:
    """Check the options in `tables` and return them as the config of a run.

    tables:  the options of a recipe, nested as in its TOML file
    changes: options to change, in the format of --set, for example "training.steps=9"
    """
    return load_recipe(tables, changes, "the lab's recipe").config


def letter_corpus(task: str, shortest: int, longest: int, symbols: int = 26) -> Tables:
    """Return the options of a synthetic corpus of letter strings.

    The caller adds the option `examples`, the number of strings.

    symbols: size of the alphabet
    """
    return {
        "kind": "synthetic",
        "task": task,
        "min_length": shortest,
        "max_length": longest,
        "symbols": symbols,
    }


def strings_to_test(corpus: Tables, length: int, count: int) -> list[Example]:
    """Return `count` strings of one length from the test split of a synthetic corpus."""
    sized = {**corpus, "min_length": length, "max_length": length, "examples": count}
    return list(read_corpus(SyntheticConfig(**sized), ".", "test", "data.train"))


def letter_accuracy(outputs: Sequence[str], targets: Sequence[str]) -> float:
    """Compare outputs and targets position by position. Returns the fraction of correct letters."""
    # token_accuracy counts tokens that are separated by spaces.
    spaced = [(" ".join(target),) for target in targets]
    return token_accuracy([" ".join(output) for output in outputs], spaced).value / 100


def training_tables(steps: int, seed: int, rate: float, batch_tokens: int = 2_048) -> Tables:
    """Return the options of the [training] table of a recipe.

    With these options, training evaluates the model only after the last step. The best checkpoint
    is therefore the last one.

    rate: learning rate
    """
    return {
        "steps": steps,
        "seed": seed,
        "batch_tokens": batch_tokens,
        "optimizer": {"learning_rate": rate},
        "schedule": {"kind": "cosine", "warmup": max(1, steps // 20)},
        "evaluate_every": steps,
        "evaluate_examples": 1,
        "checkpoint_every": steps,
    }


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
    """Sizes of a copy model and of its data.

    examples: number of training strings
    tests:    number of test strings of each length
    """

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
    """Return the recipe of a model that copies strings of letters.

    Encoder and decoder states have equal widths, as dot-product attention requires.

    decoder: options of the decoder. They differ between the models that an experiment compares
    """
    settings = trial.settings
    # Encoder and decoder inputs include position encodings, so that the model does not have to
    # learn to count.
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
    """Measure the fraction of correct letters at each length, with greedy search."""
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
    """Return a line chart and a bar chart of the accuracy of several models.

    Each model is one condition of the experiment. `lines` and `bars` contain names of conditions.

    lines: models in the line chart, which shows the accuracy at every length
    bars:  models in the bar chart, which shows the accuracy at the greatest length
    """
    labels = ("letters to copy", "fraction of correct letters")
    longest = f"fraction of correct letters, {LONGEST} letters to copy"
    return [
        condition_lines(results, labels, lines, LENGTHS, ACCURACIES),
        condition_bars(results, longest, bars, ACCURACIES[-1]),
    ]


_PAIRS: Tables = {"kind": "bundled", "source": "de", "target": "en"}
BUNDLED: Tables = {"train": _PAIRS, "dev": _PAIRS, "test": _PAIRS, "merge_references": True}
SUBWORDS: Tables = {"tokenizer": {"kind": "subwords", "algorithm": "bpe", "size": 2_000}}


@dataclass(frozen=True)
class TranslationSettings:
    """Sizes of a translation model and of its test.

    rate:      learning rate
    sentences: number of test sentences
    """

    steps: int
    width: int
    rate: float
    sentences: int


TRANSLATION_SIZES: dict[Size, TranslationSettings] = {
    "tiny": TranslationSettings(steps=2, width=8, rate=6e-3, sentences=6),
    "small": TranslationSettings(steps=400, width=128, rate=6e-3, sentences=500),
    "full": TranslationSettings(steps=4_000, width=512, rate=1e-3, sentences=1_000),
}


def translation_recipe(settings: TranslationSettings, seed: int) -> RunConfig:
    """Return the recipe of a bidirectional GRU encoder and a GRU decoder with attention."""
    shared = {"kind": "recurrent", "width": settings.width, "dropout": 0.1}
    attention = {"score": {"kind": "dot"}, "projection": "linear"}
    return build_recipe(
        {
            "data": BUNDLED,
            "text": SUBWORDS,
            "model": {
                "encoder": shared,
                "decoder": {**shared, "attention": attention, "readout": "tanh"},
            },
            "training": {
                **training_tables(settings.steps, seed, settings.rate),
                "label_smoothing": 0.1,
            },
        }
    )


def read_test_sentences(run: Run, count: int) -> list[Example]:
    """Return the first `count` sentences of the test split, each with all its references."""
    return merge_references(list(read_split(run.config.data, "test")))[:count]
