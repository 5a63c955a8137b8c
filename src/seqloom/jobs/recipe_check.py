"""Checks a recipe before training: its data, its model, and the memory that training needs."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from seqloom.config.schema.recipe import RunConfig
from seqloom.core.errors import SeqloomError
from seqloom.data.checks.doctor import DatasetCheck, WorstBatch, add_max_length_error, examine
from seqloom.data.checks.statistics import LengthHistogram, SplitStatistics
from seqloom.data.checks.vocabulary_fit import VocabularyFit
from seqloom.data.corpus.vocabularies import Tokenizers
from seqloom.data.example import Split
from seqloom.data.readers.splits import split_files
from seqloom.models.build import build_model
from seqloom.models.seq2seq import Model
from seqloom.tasks.build import learn_task
from seqloom.tasks.task import Task
from seqloom.tasks.token_task import TokenTask
from seqloom.training.fine_tuning.start import load_start
from seqloom.training.memory_estimate import StepMemory, blank_batch, step_memory


@dataclass(frozen=True)
class RecipeCheck:
    """The result of checking a recipe.

    memory: memory of a training step with the largest batch. None if it is not known
    """

    config: RunConfig
    dataset: DatasetCheck
    memory: StepMemory | None

    def to_json(self) -> dict[str, Any]:
        dataset = self.dataset
        return {
            "findings": [asdict(finding) for finding in dataset.findings],
            "splits": [self._split_to_json(statistics) for statistics in dataset.statistics],
            "worst_batch": None if dataset.worst_batch is None else asdict(dataset.worst_batch),
            "memory_bytes": None if self.memory is None else asdict(self.memory),
            "vocabulary_fit": [_fit_to_json(fit) for fit in dataset.vocabulary_fits],
        }

    def _split_to_json(self, statistics: SplitStatistics) -> dict[str, Any]:
        files = [str(path) for path in split_files(self.config.data, statistics.split)]
        record: dict[str, Any] = {"split": statistics.split, "files": files, "examples": None}
        if not self.dataset.is_complete(statistics):
            return record
        lows = [str(low) for low in LengthHistogram.lows]
        sides = {
            name: {
                "tokens": side.tokens,
                "unknown": side.unknown,
                "histogram": dict(zip(lows, side.histogram.counts, strict=True)),
            }
            for name, side in statistics.sides()
        }
        return {**record, "examples": statistics.examples, **sides}


def _fit_to_json(fit: VocabularyFit) -> dict[str, Any]:
    counts = {"new": fit.new, "parent": fit.parent}
    return {"side": fit.side} | {
        name: None if each is None else {**asdict(each), "pieces_per_word": each.pieces_per_word}
        for name, each in counts.items()
    }


def check_recipe(config: RunConfig, progress: Callable[[Split, int], None]) -> RecipeCheck:
    """Read all data of a recipe, build its model and measure the memory of the largest batch.

    progress: called with the split and the number of examples that were read
    """
    task = _parent_task(config)
    dataset = examine(config, progress, _tokenizers(task))
    built = _build_model(config, dataset, task)
    if built is None:
        return RecipeCheck(config, dataset, None)
    task, model = built
    dataset = add_max_length_error(
        dataset, config, {"source": model.source_limits, "target": model.target_limits}
    )
    return RecipeCheck(config, dataset, _measure_memory(dataset.worst_batch, task, model))


def _parent_task(config: RunConfig) -> Task | None:
    """Return the task of the run to fine-tune, including its vocabulary.

    Returns None if the recipe does not fine-tune a run.
    """

    return None if config.training.start is None else load_start(config, config.training.start).task


def _tokenizers(task: Task | None) -> Tokenizers | None:
    """Return the tokenizers of a task; None if there is no task or it has no tokenizers."""

    if not isinstance(task, TokenTask):
        return None
    return Tokenizers(task.source_tokenizer, task.target_tokenizer)


def _build_model(
    config: RunConfig, dataset: DatasetCheck, task: Task | None
) -> tuple[Task, Model] | None:
    """Return the task and the model of a recipe.

    task: the task of the run to fine-tune. None: build the task, with its vocabulary, from the data

    Returns None if the data has no targets with tokens, or if the model cannot be built.
    """

    if all(statistics.target is None for statistics in dataset.statistics):
        return None
    try:
        task = task or learn_task(config)
        return task, build_model(config.model, task.signature)
    except SeqloomError:
        return None  # the dataset check reports why the model cannot be built


def _measure_memory(batch: WorstBatch | None, task: Task, model: Model) -> StepMemory | None:
    """Return the memory that a training step with this batch needs.

    Returns None if there is no batch, or the batch is too long for the model.
    """

    if batch is None:
        return None
    lengths = (batch.source_length, batch.target_length)
    limits = (model.max_source_length, model.max_target_length)
    if any(
        limit is not None and length > limit for limit, length in zip(limits, lengths, strict=True)
    ):
        return None
    return step_memory(model, task, blank_batch(task.signature, batch.rows, *lengths))
