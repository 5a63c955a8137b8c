"""Builds the task of a run, either from the training data or from an existing run folder."""

from pathlib import Path

from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.task import TaskConfig
from seqloom.data.corpus.dataset import ProgressCallback, ignore_progress
from seqloom.data.modalities.modality import Modality
from seqloom.tasks.task import Task
from seqloom.tasks.token_task import TokenTask
from seqloom.text.tokenizer import Tokenizer


def task_class(config: TaskConfig) -> type[Task]:
    """Return the class of a task, which its settings name."""
    target = config.part_class()
    assert isinstance(target, type)
    return target


def learn_task(config: RunConfig, progress: ProgressCallback = ignore_progress) -> Task:
    """Build the task of a new run. What must be known is computed from the training split.

    progress: called if another process is training the same tokenizers, or if the cached
              tokenizers are damaged
    """
    return task_class(config.task).learn(config, progress)


def load_task(config: RunConfig, folder: Path) -> Task:
    """Load the task of an existing run from the files that `Task.save` wrote."""
    return task_class(config.task).load(config, folder)


def build_task(config: TaskConfig, modality: Modality | None, target: Tokenizer) -> TokenTask:
    """Build a task with token outputs from what was learned from the training data.

    modality: what the sources are; None if there are none
    target:   the tokenizer of the targets
    """
    task: TokenTask = config.build_part(config=config, modality=modality, target=target)
    return task
