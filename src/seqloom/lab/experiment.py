"""What experiments have in common: recipes from tables, and models that are trained only once."""

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
from seqloom.data.synthetic import read_synthetic
from seqloom.lab.claim import Settings, Trial
from seqloom.metrics.overlap import token_accuracy
from seqloom.runs.folder.integrity import is_run
from seqloom.runs.run import Run, load
from seqloom.training.event_log import Event
from seqloom.training.loop import train

Tables = dict[str, Any]


def trained(trial: Trial[Settings], config: RunConfig) -> Run:
    """The model of this recipe: trained now, or before by whoever needed the same one.

    A training that was stopped goes on where it was.
    """
    digest = hashlib.sha256(format_recipe(config).encode()).hexdigest()[:16]
    folder = trial.models / digest
    with _alone(folder):
        done = folder / "done"
        if not done.exists():
            steps = config.training.steps
            trial.tell("reading", 0.0)

            def report(event: Event) -> None:
                if event.kind == "step":
                    trial.tell("training", event.step / steps)

            summary = train(config, folder, resume=is_run(folder), report=report)
            if summary.reason == "signal":
                raise KeyboardInterrupt
            with storage_errors(done):
                done.touch()
    trial.tell("measuring", 1.0)
    return load(folder, engine="torch")


def learning_curve(run: Run, name: str) -> list[tuple[int, float]]:
    """(step, score) at each evaluation of a training."""
    lines = (run.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    return [(one["step"], one[name]) for one in events if one["event"] == "evaluate"]


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Whoever needs the same model waits for it instead of training it again."""
    with storage_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        file = folder.with_name(f"{folder.name}.lock").open("w")
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def recipe(tables: Tables, changes: Sequence[str] = ()) -> RunConfig:
    """A recipe from its tables, changed as by --set."""
    return load_recipe(tables, changes, "the lab's recipe").config


def letters(task: str, shortest: int, longest: int, symbols: int = 26) -> Tables:
    """A made-up corpus of strings of letters, less how many of them."""
    return {
        "kind": "synthetic",
        "task": task,
        "min_length": shortest,
        "max_length": longest,
        "symbols": symbols,
    }


def unseen(corpus: Tables, length: int, count: int) -> list[Example]:
    """Strings of one length from the test split of such a corpus."""
    sized = {**corpus, "min_length": length, "max_length": length, "examples": count}
    return list(read_synthetic(SyntheticConfig(**sized), "test"))


def right_letters(outputs: Sequence[str], targets: Sequence[str]) -> float:
    """The share of letters that stand where they should, 0 to 1."""
    # The score counts what spaces separate.
    spaced = [(" ".join(target),) for target in targets]
    return token_accuracy([" ".join(output) for output in outputs], spaced).value / 100


def training(steps: int, seed: int, rate: float, batch_tokens: int = 2_048) -> Tables:
    """Training that only looks at the dev split at its end: the last weights count."""
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
