"""Scores of a run on a split, with the outputs they are of."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seqloom import __version__
from seqloom.config.data import DataConfig
from seqloom.config.decoding import DecodingConfig
from seqloom.core.errors import DataError
from seqloom.core.sequences import Batch, Images
from seqloom.core.storage import new_folder
from seqloom.data.batching import plan_batches
from seqloom.data.collate import collate
from seqloom.data.example import Example, Split
from seqloom.data.text_windows import WindowShape
from seqloom.metrics.lengths import Bucket, by_length
from seqloom.metrics.score import Score
from seqloom.metrics.significance import Comparison, compare
from seqloom.runs.likelihood import summed_loss
from seqloom.runs.parts import PartScores, mean_scores
from seqloom.runs.perplexity import running_text_scores, sentence_scores
from seqloom.runs.predictor import Advance, Predictor
from seqloom.runs.soundness import EVALUATION
from seqloom.tasks.task import ModelInput
from seqloom.tasks.token_task import TokenTask
from seqloom.text.running import newline_of


@dataclass(frozen=True)
class Report:
    """How good a run is on a split.

    outputs and examples are empty when there is nothing to compare outputs with (a language
    model); its likelihood scores are there all the same.
    """

    run: str
    split: Split
    sentences: int
    scores: tuple[Score, ...]
    by_length: tuple[Bucket, ...]
    examples: tuple[Example, ...]
    outputs: tuple[str, ...]
    cut_off: int
    """Outputs that the length limit ended."""
    decoding: DecodingConfig
    data: DataConfig
    members: int = 1
    """Runs that were asked together: more than one is an ensemble."""
    engine: str = "torch"
    """What searched for the outputs."""
    parts: Sequence[PartScores] = ()
    """The same scores for each pair of languages, or other part of the split, by itself; empty if
    there is only one."""

    def to_json(self) -> dict[str, Any]:
        """Everything but the sentences, which are saved beside it."""
        return {
            "run": self.run,
            "split": self.split,
            "members": self.members,
            "sentences": self.sentences,
            "cut_off": self.cut_off,
            "scores": [asdict(score) for score in self.scores],
            "parts": [asdict(part) for part in self.parts],
            "mean_of_parts": [asdict(score) for score in mean_scores(self.parts)],
            "by_length": [asdict(bucket) for bucket in self.by_length],
            "decoding": self.decoding.model_dump(),
            "engine": self.engine,
            "data": self.data.model_dump(mode="json", include={"folder", self.split}),
            "versions": {"seqloom": __version__, "torch": torch.__version__},
        }

    def save(self, folder: Path) -> Path:
        """Scores, sources, references and outputs, line by line.

        What an ensemble reaches lies beside what its first run reaches alone.
        """
        place = self._place(folder)
        with new_folder(place) as temporary:
            text = json.dumps(self.to_json(), indent=2, ensure_ascii=False)
            (temporary / "report.json").write_text(text, encoding="utf-8")
            if self.outputs:
                _write_lines(temporary / "outputs.txt", self.outputs)
                _write_lines(temporary / "sources.txt", [one.source for one in self.examples])
                references = ["\t".join(one.references) for one in self.examples]
                _write_lines(temporary / "references.txt", references)
        return place

    def replaces(self, folder: Path) -> list[str]:
        """In what the report that `save` would replace is of something else."""
        path = self._place(folder) / "report.json"
        old = json.loads(path.read_bytes()) if path.is_file() else {}
        new = json.loads(json.dumps(self.to_json()))
        return [
            name for name in ("data", "decoding", "engine") if old and old.get(name) != new[name]
        ]

    def _place(self, folder: Path) -> Path:
        alone = self.members == 1
        return folder / EVALUATION / (self.split if alone else f"{self.split}-ensemble")


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def evaluate(
    predictor: Predictor,
    examples: Sequence[Example],
    decoding: DecodingConfig,
    advance: Advance | None = None,
) -> tuple[list[Score], list[Bucket], list[str], int]:
    """Scores, scores by length, outputs and how many of them were cut off."""
    task = predictor.task
    questions = [task.source_text(example) for example in examples]
    if not any(questions):
        return [], [], [], 0
    found = predictor.predict(questions, decoding, advance=advance)
    outputs = [hypotheses[0].text for hypotheses in found]
    cut_off = sum(not hypotheses[0].finished for hypotheses in found)
    references = [example.references for example in examples]
    buckets = by_length(task.metrics[0], questions, outputs, references) if task.metrics else []
    return task.scores(outputs, examples), buckets, outputs, cut_off


def likelihood_scores(
    predictor: Predictor, examples: Sequence[Example], shape: WindowShape | None = None
) -> list[Score]:
    """How probable the model finds the true targets, END included.

    shape: the windows through which running text is seen; None: targets stand for themselves
    """
    task = predictor.task
    _refuse_other_text(task, shape)
    if shape is not None:
        return running_text_scores(predictor, examples, shape)
    prepared = [_asked(task, one) for one in examples]
    predictor.refuse_too_long(prepared)
    encode = task.target_tokenizer.encode
    targets = [
        np.array((*asked.prefix, *encode(one.target.strip())), np.int32)
        for asked, one in zip(prepared, examples, strict=True)
    ]
    predictor.refuse_long_answers([row.tolist() for row in targets])
    sources = _read(task, prepared)
    images = _images(task, examples)
    longest = max(len(row) + 1 for row in (*targets, *(sources or ())))
    plan = plan_batches(
        None if sources is None else np.array([len(row) for row in sources]),
        np.array([len(row) for row in targets]),
        max(4_096, longest),
        seed=0,
        epoch=0,
    )

    def laid(rows: NDArray[Any]) -> Batch:
        read = None if sources is None else [sources[i] for i in rows]
        batch = collate(read, [targets[i] for i in rows])
        return batch if images is None else replace(batch, source=images(rows))

    batches = map(laid, plan)
    total, count = summed_loss(predictor.model, task, batches, predictor.device)
    return sentence_scores(total, count, examples)


def _refuse_other_text(task: TokenTask, shape: WindowShape | None) -> None:
    """A model of running text knows no END, and one of sentences no end of a line."""
    if (newline_of(task.target_tokenizer) is None) == (shape is None):
        return
    kinds = ("running text", "sentences")
    learned, given = kinds if shape is None else reversed(kinds)
    raise DataError(
        f"the model has learned {learned}, and these data are {given}; score it on data of the kind "
        "it was trained on"
    )


def _images(
    task: TokenTask, examples: Sequence[Example]
) -> Callable[[NDArray[Any]], Images] | None:
    """The images of some examples, by their numbers; None if none are read."""
    if task.image_size is None:
        return None
    places = list(dict.fromkeys(one.source for one in examples))
    pixels = {place: task.prepare(place).image for place in places}

    def of(rows: NDArray[Any]) -> Images:
        chosen = [pixels[examples[row].source] for row in rows]
        return Images(torch.from_numpy(np.stack([one for one in chosen if one is not None])))

    return of


def _asked(task: TokenTask, example: Example) -> ModelInput:
    """What is asked, without the image it may be asked about, which is looked at later."""
    return (
        task.prepare(task.source_text(example)) if task.image_size is None else ModelInput(None, ())
    )


def _read(task: TokenTask, prepared: Sequence[ModelInput]) -> list[np.ndarray] | None:
    """The ids that are read for each example; None where no text is."""
    if task.source_tokenizer is None:
        return None
    return [np.array(one.source, np.int32) for one in prepared]


def compare_reports(baseline: Report, system: Report) -> list[Comparison]:
    """Paired bootstrap between two runs' outputs for the same sentences."""
    theirs = [example.source for example in baseline.examples]
    ours = [example.source for example in system.examples]
    if theirs != ours:
        raise DataError(
            f"{baseline.run} and {system.run} were not evaluated on the same sentences, so they "
            "cannot be compared; evaluate both on the same test set"
        )
    references = [example.references for example in system.examples]
    return compare(baseline.outputs, system.outputs, references)
