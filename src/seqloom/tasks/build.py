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
from seqloom.data.corpus.frame_store import FrameScale
from seqloom.data.corpus.vocabularies import train_tokenizers
from seqloom.data.readers.splits import read_split
from seqloom.tasks.captioning import Captioning
from seqloom.tasks.forecast import Forecast
from seqloom.tasks.frame_labelling import FrameLabelling
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
    sources computes the scale that normalises them.

    progress: called if another process is training the same tokenizers, or if the cached
              tokenizers are damaged
    """
    if isinstance(config.task, ForecastConfig):
        return Forecast.learn(config.task, config.data, config.is_free_running)
    tokenizers = train_tokenizers(config, progress)
    if isinstance(config.task, LabelsConfig) and config.data.has_frames:
        scale = FrameScale.learn(example.source for example in read_split(config.data, "train"))
        return FrameLabelling(scale, tokenizers.target, config.task.scores)
    return build_task(config.task, *tokenizers)


def load_task(config: RunConfig, folder: Path) -> Task:
    """Load the task of an existing run from the files that `Task.save` wrote."""
    if isinstance(config.task, ForecastConfig):
        return Forecast.load(config.task, folder, config.is_free_running)
    target = load_tokenizer(folder, "target")
    if isinstance(config.task, LabelsConfig) and config.data.has_frames:
        return FrameLabelling(FrameScale.load(folder), target, config.task.scores)
    source = load_tokenizer(folder, "source") if (folder / "source.json").exists() else None
    return build_task(config.task, source, target)


def build_task(config: TokenTaskConfig, source: Tokenizer | None, target: Tokenizer) -> TokenTask:
    """Build a task from tokenizers that are already trained."""
    match config:
        case TranslationConfig(scores=scores, tag_side=tag_side):
            assert source is not None, "translation needs a source tokenizer"
            return Translation(source, target, scores, tag_side)
        case LabelsConfig(scores=scores):
            assert source is not None, "labelling needs a source tokenizer"
            return Labelling(source, target, scores)
        case LanguageModelConfig():
            return LanguageModel(target)
        case CaptioningConfig(size=size, margin=margin):
            return Captioning(target, size, margin)
        case _:
            assert_never(config)
