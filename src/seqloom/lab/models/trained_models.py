"""Trains models for experiments, each once, from recipes given as tables."""

import fcntl
import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seqloom.config.loading.loader import load_recipe
from seqloom.config.loading.toml import format_recipe
from seqloom.config.schema.corpora import SyntheticConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.storage import storage_errors
from seqloom.data.example import Example
from seqloom.data.readers.synthetic import read_synthetic
from seqloom.lab.claim import SettingsT, Trial
from seqloom.metrics.error_rates import token_accuracy
from seqloom.runs.folder.integrity import is_run
from seqloom.runs.run import Run, load
from seqloom.training.event_log import Event
from seqloom.training.loop import train

Tables = dict[str, Any]
"""Tables of a recipe, as in its TOML file."""


def train_once(trial: Trial[SettingsT], config: RunConfig) -> Run:
    """The trained model of a recipe. Trains it, resumes its training, or loads it."""
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


def learning_curve(run: Run, name: str) -> list[tuple[int, float]]:
    """(step, score) of every evaluation during the training of a run."""
    lines = (run.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    return [(event["step"], event[name]) for event in events if event["event"] == "evaluate"]


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Lock a model folder, so that parallel processes do not train the same model twice."""
    with storage_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        file = folder.with_name(f"{folder.name}.lock").open("w")
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build_recipe(tables: Tables, changes: Sequence[str] = ()) -> RunConfig:
    """A recipe from its tables. Changes have the form of the option --set."""
    return load_recipe(tables, changes, "the lab's recipe").config


def letter_corpus(task: str, shortest: int, longest: int, symbols: int = 26) -> Tables:
    """Tables of a synthetic corpus of letter strings, without the number of examples."""
    return {
        "kind": "synthetic",
        "task": task,
        "min_length": shortest,
        "max_length": longest,
        "symbols": symbols,
    }


def strings_to_test(corpus: Tables, length: int, count: int) -> list[Example]:
    """Strings of one length from the test split of a synthetic corpus."""
    sized = {**corpus, "min_length": length, "max_length": length, "examples": count}
    return list(read_synthetic(SyntheticConfig(**sized), "test"))


def letter_accuracy(outputs: Sequence[str], targets: Sequence[str]) -> float:
    """Fraction of correct letters, position by position, from 0 to 1."""
    # token_accuracy counts tokens that are separated by spaces.
    spaced = [(" ".join(target),) for target in targets]
    return token_accuracy([" ".join(output) for output in outputs], spaced).value / 100


def training_tables(steps: int, seed: int, rate: float, batch_tokens: int = 2_048) -> Tables:
    """Training that evaluates only at its end, so that it keeps the last weights.

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
