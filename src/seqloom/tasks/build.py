"""Builds the task of a run, either from the training data or from an existing run folder."""

from pathlib import Path
from typing import assert_never

from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.task import (
    CaptioningConfig,
    ForecastConfig,
    LabelsConfig,
    LanguageModelConfig,
    TokenTaskConfig,
    TranslationConfig,
)
from seqloom.data.corpus.dataset import ProgressCallback, ignore_progress
from seqloom.data.corpus.vocabularies import train_tokenizers
from seqloom.data.modalities.modality import Modality
from seqloom.data.modalities.registry import learn_modality, load_modality
from seqloom.data.readers.splits import read_split
from seqloom.tasks.captioning import Captioning
from seqloom.tasks.forecast import Forecast
from seqloom.tasks.labelling import Labelling
from seqloom.tasks.language_model import LanguageModel
from seqloom.tasks.task import Task
from seqloom.tasks.token_task import TokenTask
from seqloom.tasks.translation import Translation
from seqloom.text.build import load_tokenizer
from seqloom.text.tokenizer import Tokenizer


def learn_task(config: RunConfig, progress: ProgressCallback = ignore_progress) -> Task:
    """Build the task of a new run.

    A task with token outputs trains its tokenizers on the training split. A task with vectors as
    sources computes the numbers that normalise them.

    progress: called if another process is training the same tokenizers, or if the cached
              tokenizers are damaged
    """
    if isinstance(config.task, ForecastConfig):
        return Forecast.learn(config.task, config.data, config.is_free_running)
    tokenizers = train_tokenizers(config, progress)
    sources = (example.source for example in read_split(config.data, "train"))
    modality = learn_modality(config, tokenizers.source, sources)
    return build_task(config.task, modality, tokenizers.target)


def load_task(config: RunConfig, folder: Path) -> Task:
    """Load the task of an existing run from the files that `Task.save` wrote."""
    if isinstance(config.task, ForecastConfig):
        return Forecast.load(config.task, folder, config.is_free_running)
    modality = load_modality(config, folder)
    return build_task(config.task, modality, load_tokenizer(folder, "target"))


def build_task(config: TokenTaskConfig, modality: Modality | None, target: Tokenizer) -> TokenTask:
    """Build a task from what was learned from the training data.

    modality: what the sources are; None if there are none
    target:   the tokenizer of the targets
    """
    if isinstance(config, LanguageModelConfig):
        return LanguageModel(target)
    assert modality is not None, f"the task '{config.kind}' needs sources"
    match config:
        case TranslationConfig(scores=scores, tag_side=tag_side):
            return Translation(modality, target, scores, tag_side)
        case LabelsConfig(scores=scores):
            return Labelling(modality, target, scores)
        case CaptioningConfig():
            return Captioning(modality, target)
        case _:
            assert_never(config)
