"""Evaluation of a run on a split: the scores, and the outputs from which they are computed."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seqloom import __version__
from seqloom.config.schema.data import DataConfig
from seqloom.config.schema.decoding import DecodingConfig
from seqloom.config.schema.text import Normalization
from seqloom.core.batch import Batch
from seqloom.core.errors import DataError
from seqloom.core.storage import atomic_folder
from seqloom.data.batching.collate import collate
from seqloom.data.batching.layout import plan_batches
from seqloom.data.corpus.long_text import WindowShape
from seqloom.data.example import Example, Split
from seqloom.inference.evaluation.groups import GroupScores, mean_scores
from seqloom.inference.evaluation.perplexity import corpus_loss, long_text_scores, sentence_scores
from seqloom.inference.predictor import Predictor, ProgressCallback
from seqloom.metrics.by_length import LengthBucket, by_length
from seqloom.metrics.score import Score
from seqloom.metrics.significance import PairedComparison, compare_systems
from seqloom.runs.integrity import EVALUATION
from seqloom.tasks.scored_texts import normalise_texts
from seqloom.tasks.task import collate_sources
from seqloom.tasks.token_task import TokenTask
from seqloom.text.long_text import newline_id
from seqloom.text.preprocessing import Tags

BATCH_TOKENS = 4_096
"""Maximum number of tokens per batch when targets are scored."""


@dataclass(frozen=True)
class EvaluationReport:
    """The scores of a run on a split.

    scores:        scores of the outputs, followed by the likelihood scores
    by_length:     scores of the outputs, grouped by the length of the source
    outputs:       one text per example. Empty for a language model, which has only likelihood scores.
    cut_off:       number of outputs that reached the length limit before END
    empty:         number of empty outputs
    members:       number of runs in the ensemble. 1 for a single run.
    engine:        name of the engine that computed the outputs
    parts:         scores of each group of the split. A group is, for example, a language pair. Empty if
                   there is only one group.
    settings:      settings of the model that were changed after training, for example
                   "model.decoder.attention.selection=argmax"
    normalization: Unicode form in which outputs and references are compared
    """

    run: str
    split: Split
    sentences: int
    scores: tuple[Score, ...]
    by_length: tuple[LengthBucket, ...]
    examples: tuple[Example, ...]
    outputs: tuple[str, ...]
    cut_off: int
    empty: int
    decoding: DecodingConfig
    data: DataConfig
    members: int = 1
    engine: str = "torch"
    parts: Sequence[GroupScores] = ()
    settings: tuple[str, ...] = ()
    normalization: Normalization = "none"

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain Python objects, for JSON.

        Sources, references and outputs are left out. They have their own files.
        """
        return {
            "run": self.run,
            "split": self.split,
            "members": self.members,
            "sentences": self.sentences,
            "cut_off": self.cut_off,
            "empty": self.empty,
            "scores": [asdict(score) for score in self.scores],
            "parts": [asdict(group) for group in self.parts],
            "mean_of_parts": [asdict(score) for score in mean_scores(self.parts)],
            "by_length": [asdict(bucket) for bucket in self.by_length],
            "decoding": self.decoding.model_dump(),
            "engine": self.engine,
            "settings": list(self.settings),
            "data": self.data.model_dump(mode="json", include={"folder", self.split}),
            "versions": {"seqloom": __version__, "torch": torch.__version__},
        }

    def save(self, folder: Path) -> Path:
        """Write scores, sources, references and outputs to a subfolder of the run folder.

        Returns the path of the subfolder. An ensemble has a subfolder of its own, so its report
        does not overwrite that of a single run.
        """
        path = self._path(folder)
        with atomic_folder(path) as temporary:
            text = json.dumps(self.to_json(), indent=2, ensure_ascii=False)
            (temporary / "report.json").write_text(text, encoding="utf-8")
            if self.outputs:
                _write_lines(temporary / "outputs.txt", self.outputs)
                _write_lines(
                    temporary / "sources.txt", [example.source for example in self.examples]
                )
                references = ["\t".join(example.references) for example in self.examples]
                _write_lines(temporary / "references.txt", references)
        return path

    def changed_settings(self, folder: Path) -> list[str]:
        """Compare this report with the stored report that `save` would overwrite.

        Returns the names of the fields that differ: "data", "decoding", "engine", "settings".
        Returns an empty list if no report is stored.
        """
        path = self._path(folder) / "report.json"
        if not path.is_file():
            return []
        old = json.loads(path.read_bytes())
        new = json.loads(json.dumps(self.to_json()))
        names = ("data", "decoding", "engine", "settings")
        return [name for name in names if old.get(name) != new[name]]

    def _path(self, folder: Path) -> Path:
        name = self.split if self.members == 1 else f"{self.split}-ensemble"
        return folder / EVALUATION / name


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@dataclass(frozen=True)
class ScoredOutputs:
    """Output texts and their scores. All lists are empty for a language model.

    cut_off: number of outputs that reached the length limit before END
    empty:   number of empty outputs
    """

    texts: list[str]
    scores: list[Score]
    by_length: list[LengthBucket]
    cut_off: int
    empty: int


def evaluate_outputs(
    predictor: Predictor,
    examples: Sequence[Example],
    decoding: DecodingConfig,
    progress: ProgressCallback | None = None,
) -> ScoredOutputs:
    """Predict an output for every example and score the outputs against the references."""
    task = predictor.task
    sources = [task.source_text(example) for example in examples]
    if not any(sources):
        return ScoredOutputs([], [], [], 0, 0)
    predictions = predictor.predict(sources, decoding, progress=progress)
    texts = [hypotheses[0].text for hypotheses in predictions]
    cut_off = sum(not hypotheses[0].finished for hypotheses in predictions)
    scored = task.scored_texts(texts, examples)
    buckets = (
        by_length(task.metrics[0], sources, scored.outputs, scored.references)
        if task.metrics
        else []
    )
    empty = sum(not text.strip() for text in texts)
    return ScoredOutputs(texts, task.scores(texts, examples), buckets, cut_off, empty)


def likelihood_scores(
    predictor: Predictor, examples: Sequence[Example], shape: WindowShape | None = None
) -> list[Score]:
    """Compute perplexity and related scores from the log-probabilities of the target tokens.

    END counts as a token of a sentence. A long text has no END.

    shape: size of the windows if the examples are the lines of a long text. None if they are
           sentences.
    """
    task = predictor.task
    _check_same_kind_of_text(task, shape)
    if shape is not None:
        return long_text_scores(predictor, examples, shape)
    texts = [task.source_text(example) for example in examples]
    # Several examples can have the same source, for example the captions of an image.
    prepared = {text: task.prepare(text) for text in dict.fromkeys(texts)}
    inputs = [prepared[text] for text in texts]
    predictor.check_input_lengths(inputs)
    encode = task.target_tokenizer.encode
    targets = [
        np.array((*one.prefix, *encode(example.target.strip())), np.int32)
        for one, example in zip(inputs, examples, strict=True)
    ]
    predictor.check_target_lengths([target.tolist() for target in targets])
    lengths = [one.source_length or 0 for one in inputs]
    longest = 1 + max(max(len(row) for row in targets), max(lengths))
    plan = plan_batches(
        None if task.source_tokenizer is None else np.array(lengths),
        np.array([len(row) for row in targets]),
        max(BATCH_TOKENS, longest),
        seed=0,
        epoch=0,
    )

    def build_batch(rows: NDArray[Any]) -> Batch:
        batch = collate(None, [targets[i] for i in rows])
        return replace(batch, source=collate_sources([inputs[i] for i in rows]))

    batches = map(build_batch, plan)
    total, count = corpus_loss(predictor.model, task, batches, predictor.device)
    return sentence_scores(total, count, examples)


def _check_same_kind_of_text(task: TokenTask, shape: WindowShape | None) -> None:
    """Raise a DataError if the data is not of the kind that the model was trained on.

    A model trained on a long text cannot score sentences, because it has no END. A model trained on
    sentences cannot score a long text, because it has no newline token.

    shape: size of the windows if the data is a long text. None if it consists of sentences.
    """
    if (newline_id(task.target_tokenizer) is None) == (shape is None):
        return
    kinds = ("a long text", "sentences")
    trained_on, given = kinds if shape is None else reversed(kinds)
    raise DataError(
        f"the model was trained on {trained_on}, and this data consists of {given}. Evaluate the "
        f"model on {trained_on}"
    )


def compare_reports(baseline: EvaluationReport, system: EvaluationReport) -> list[PairedComparison]:
    """Compare the outputs of two runs on the same sentences by a paired bootstrap test."""
    baseline_sources = [example.source for example in baseline.examples]
    system_sources = [example.source for example in system.examples]
    if baseline_sources != system_sources:
        raise DataError(
            f"{baseline.run} and {system.run} were evaluated on different sentences and cannot be "
            "compared. Evaluate both on the same test set"
        )
    # A run that was trained without normalisation is compared in the form of the other run.
    form = system.normalization if system.normalization != "none" else baseline.normalization
    tags = Tags((), form)
    first, second = (
        normalise_texts(report.outputs, report.examples, tags, sources=False)
        for report in (baseline, system)
    )
    changed = first if first.changed else second
    return [
        replace(comparison, signature=changed.sign(comparison.signature) or "")
        for comparison in compare_systems(first.outputs, second.outputs, second.references)
    ]
