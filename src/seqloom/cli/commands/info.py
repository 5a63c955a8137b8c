"""The command `seqloom info`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from seqloom.cli.options import Json, argument, locate_run
from seqloom.cli.output import print_json, print_line
from seqloom.cli.tables import metric_label

if TYPE_CHECKING:
    from seqloom.runs.info import DataInfo, RunInfo, TrainingInfo


def info(
    run_path: Annotated[
        Path,
        argument(
            "RUN",
            "Run folder, written by `seqloom train`, or packed run, written by `seqloom pack`.",
        ),
    ],
    json: Json = False,
) -> None:
    """Print what a run is: task, model, vocabulary, data, training, scores, versions and size.

    Is fast, because it does not read the training data and does not check all files of the run.
    """
    from seqloom.config.loading.loader import load_run_recipe
    from seqloom.runs.info import read_info
    from seqloom.serving.api.languages.pairs import recipe_language_pairs

    folder = locate_run(run_path)
    found = read_info(run_path)
    config = load_run_recipe(folder / "config.toml").config
    languages = [str(pair) for pair in recipe_language_pairs(config)]
    if json:
        print_json({**found.to_json(), "languages": languages}, indent=2)
        return
    rows = [*_describe(found, languages)]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print_line(f"{name:<{width}}  {value}")


def _describe(found: RunInfo, languages: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield a name and a value for each printed line, for example "run" and the run's name."""
    pairs = f" ({', '.join(languages)})" if languages else ""
    yield "run", found.run
    yield "task", f"{found.task}{pairs}"
    count = "no weights yet" if found.parameters is None else f"{found.parameters:,} parameters"
    yield "model", f"{found.encoder} encoder, {found.decoder} decoder, {count}"
    for vocabulary in found.vocabularies:
        yield f"{vocabulary.side} vocabulary", f"{vocabulary.size:,} {vocabulary.kind}"
    if found.parent is not None:
        digest = f" (weights {found.parent.weights[:12]}…)" if found.parent.weights else ""
        yield "fine-tuned from", f"{found.parent.run}{digest}"
    yield from _describe_data(found.data)
    yield from _describe_training(found.training)
    for evaluation in found.evaluations:
        counted = "" if evaluation.examples is None else f" ({evaluation.examples:,} examples)"
        for number, score in enumerate(evaluation.scores):
            name = f"scores on {evaluation.name}{counted}" if not number else ""
            signature = f"  {score.signature}" if score.signature else ""
            yield name, f"{score.name} {score.value:.4g}{signature}"
    if found.versions:
        yield "versions", ", ".join(f"{name} {each}" for name, each in found.versions.items())
    yield "format", str(found.format)
    yield "size", format_size(found.bytes)


def _describe_data(data: DataInfo) -> Iterator[tuple[str, str]]:
    counts = {"train": data.train_examples, "dev": data.dev_examples}
    for split, corpora in (("train", data.train), ("dev", data.dev), ("test", data.test)):
        if corpora:
            count = counts.get(split)
            counted = "" if count is None else f" ({count:,} examples)"
            yield f"{split} data", "; ".join(corpora) + counted
    if data.folder != ".":
        yield "data folder", data.folder


def _describe_training(training: TrainingInfo) -> Iterator[tuple[str, str]]:
    state = "" if training.reason else ", not finished"
    parts = [f"{training.step:,} of {training.steps:,} steps{state}"]
    if training.seconds is not None:
        parts.append(f"{training.seconds / 60:.1f} minutes")
    if training.device is not None:
        parts.append(f"on {training.device}")
    if training.started is not None:
        parts.append(f"started {training.started}")
    yield "training", ", ".join(parts)
    if training.best is not None:
        name = metric_label(training.score)
        yield "best weights", f"dev {name} {training.best:.4g} at step {training.best_step:,}"


def format_size(size: int) -> str:
    """Return a number of bytes in MB, or in kB if it is small."""
    return f"{size / 1e6:,.1f} MB" if size >= 100_000 else f"{size / 1e3:,.1f} kB"
