"""What a run folder contains: task, model, data, training and scores.

This module reads only small files and the header of the weights. It needs neither torch nor the
data, and it does not compare files with their digests.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from seqloom.config.loading.loader import load_run_recipe
from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import NotFoundError, StorageError
from seqloom.core.storage import read_format, read_manifest
from seqloom.runs.archive import open_run
from seqloom.runs.checkpoint_store import COPY_RUN
from seqloom.runs.integrity import (
    CONFIG,
    EVALUATION,
    WEIGHTS,
    is_run,
    weights_store,
)
from seqloom.runs.listing import describe_corpus, format_time
from seqloom.runs.recipe import read_events
from seqloom.text.build import load_tokenizer


@dataclass(frozen=True)
class VocabularyInfo:
    """The vocabulary of the source or of the target.

    side: "source" or "target"
    kind: kind of the tokenizer
    size: number of tokens, including special tokens
    """

    side: str
    kind: str
    size: int


@dataclass(frozen=True)
class DataInfo:
    """The corpora of each split, and the numbers of examples that training used."""

    folder: str
    train: list[str]
    dev: list[str]
    test: list[str]
    train_examples: int | None
    dev_examples: int | None


@dataclass(frozen=True)
class TrainingInfo:
    """How the run was trained.

    step:    the last step in the event log
    steps:   the number of steps that the recipe asks for
    reason:  why training ended; None if it has not ended
    score:   name of the score that selected the weights
    seconds: training time, without interruptions
    started: time of the first event, in ISO 8601
    """

    step: int
    steps: int
    reason: str | None
    score: str
    best: float | None
    best_step: int | None
    seconds: float | None
    started: str | None
    device: str | None


@dataclass(frozen=True)
class ScoreInfo:
    """One score of a stored evaluation report."""

    name: str
    value: float
    signature: str


@dataclass(frozen=True)
class EvaluationInfo:
    """The scores of a stored evaluation report."""

    name: str
    examples: int | None
    scores: list[ScoreInfo]


@dataclass(frozen=True)
class ParentInfo:
    """The run that this run was fine-tuned from. `weights` is the SHA-256 of its weights."""

    run: str
    weights: str | None


@dataclass(frozen=True)
class RunInfo:
    """What a run folder or a packed run contains.

    bytes: size of the folder or the file
    """

    run: str
    format: int
    task: str
    encoder: str
    decoder: str
    parameters: int | None
    vocabularies: list[VocabularyInfo]
    data: DataInfo
    training: TrainingInfo
    parent: ParentInfo | None
    evaluations: list[EvaluationInfo]
    versions: dict[str, str]
    bytes: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def read_info(path: Path) -> RunInfo:
    """Read what a run folder or a packed run contains."""
    folder = open_run(path)
    if not is_run(folder):
        raise NotFoundError(f"{path}: is not a run folder. Give one that `seqloom train` wrote.")
    manifest_format = read_format(folder)
    manifest = read_manifest(folder)
    config = load_run_recipe(folder / CONFIG).config
    events = read_events(folder)
    evaluations = _read_evaluations(folder)
    start = config.training.start
    return RunInfo(
        run=str(path),
        format=manifest_format,
        task=config.task.kind,
        encoder=config.model.encoder.kind,
        decoder=config.model.decoder.kind,
        parameters=_count_parameters(folder),
        vocabularies=_read_vocabularies(folder / "text"),
        data=_data_info(config, events),
        training=_training_info(config, events),
        parent=None if start is None else ParentInfo(start.run, manifest.get("start")),
        evaluations=[info for info, _ in evaluations],
        versions=_versions(manifest, [report for _, report in evaluations]),
        bytes=_size(path),
    )


def _size(path: Path) -> int:
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(file.stat().st_size for file in files)


def _count_parameters(folder: Path) -> int | None:
    """Return the number of weights, computed from the shapes in the header of the weights file.

    Returns None if there is no weights file yet, that is, before the first evaluation.
    """
    weights = weights_store(folder).current_path()
    if weights is None:
        return None
    total = 0
    try:
        with safe_open(weights / WEIGHTS, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 - not a dictionary
                size = 1
                for length in file.get_slice(name).get_shape():
                    size *= length
                total += size
    except (SafetensorError, OSError) as error:
        raise StorageError(f"{weights / WEIGHTS}: cannot be read: {error}. {COPY_RUN}") from error
    return total


def _read_vocabularies(folder: Path) -> list[VocabularyInfo]:
    """Return the vocabularies of source and target. A forecasting run has none."""
    found = []
    for side in ("source", "target"):
        path = folder / f"{side}.json"
        if path.is_file():
            kind = str(json.loads(path.read_bytes()).get("kind"))
            found.append(VocabularyInfo(side, kind, load_tokenizer(folder, side).size))
    return found


def _data_info(config: RunConfig, events: Sequence[dict[str, Any]]) -> DataInfo:
    start = _last(events, "start")
    data = config.data
    return DataInfo(
        folder=data.folder,
        train=[describe_corpus(corpus) for corpus in data.train],
        dev=[describe_corpus(corpus) for corpus in data.dev],
        test=[describe_corpus(corpus) for corpus in data.test],
        train_examples=start.get("examples"),
        dev_examples=start.get("dev_examples"),
    )


def _training_info(config: RunConfig, events: Sequence[dict[str, Any]]) -> TrainingInfo:
    end = _last(events, "end")
    best = [event for event in events if event.get("event") == "evaluate" and event.get("best")]
    name = config.training.stopping.score
    times = [event["time"] for event in events if isinstance(event.get("time"), int | float)]
    return TrainingInfo(
        step=max((int(event.get("step", 0)) for event in events), default=0),
        steps=config.training.steps,
        reason=end.get("reason"),
        score=name,
        best=best[-1].get(name) if best else None,
        best_step=best[-1].get("step") if best else None,
        seconds=_training_seconds(events) if times else None,
        started=format_time(times[0]) if times else None,
        device=_last(events, "start").get("device"),
    )


def _training_seconds(events: Sequence[dict[str, Any]]) -> float:
    """Return the training time: the sum of the times between events, without interruptions.

    An interruption ends with the event `start` of the resumed run.
    """
    return sum(
        later["time"] - earlier["time"]
        for earlier, later in pairwise(event for event in events if "time" in event)
        if later.get("event") != "start"
    )


def _read_evaluations(folder: Path) -> list[tuple[EvaluationInfo, dict[str, Any]]]:
    """Return two forms of each stored evaluation report: its scores, and the whole JSON object."""
    found = []
    for path in sorted((folder / EVALUATION).glob("[!.]*/report.json")):
        try:
            report = json.loads(path.read_bytes())
            scores = [
                ScoreInfo(score["name"], score["value"], score.get("signature", ""))
                for score in report["scores"]
            ]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StorageError(
                f"{path}: is damaged: {error!r}. Evaluate the run again with `seqloom evaluate`"
            ) from error
        examples = report.get("sentences", report.get("windows"))
        found.append((EvaluationInfo(path.parent.name, examples, scores), report))
    return found


def _versions(manifest: dict[str, Any], reports: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return the versions of seqloom and torch that the run was created with.

    Older runs store the versions only in their evaluation reports.
    """
    stored: dict[str, str] = {
        name: manifest[name] for name in ("seqloom", "torch") if name in manifest
    }
    for report in reports:
        stored = {**report.get("versions", {}), **stored}
    return stored


def _last(events: Sequence[dict[str, Any]], kind: str) -> dict[str, Any]:
    """Return the last event of this kind; an empty dictionary if there is none."""
    return next((event for event in reversed(events) if event.get("event") == kind), {})
