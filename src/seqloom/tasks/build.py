"""TaskConfig → Task: new, with what its training split teaches, or out of a run folder."""

from pathlib import Path
from typing import assert_never

from seqloom.config.run import RunConfig
from seqloom.config.task import (
    CaptioningConfig,
    ForecastConfig,
    LabelsConfig,
    LanguageModelConfig,
    TaskConfig,
    TokenTaskConfig,
    TranslationConfig,
)
from seqloom.data.vocabularies import learn_tokenizers
from seqloom.tasks.captioning import Captioning
from seqloom.tasks.forecast import Forecast
from seqloom.tasks.labels import Labels
from seqloom.tasks.language_model import LanguageModel
from seqloom.tasks.task import Trainable
from seqloom.tasks.tokens import TokenTask
from seqloom.tasks.translation import Translation
from seqloom.text.build import load_tokenizer
from seqloom.text.tokenizer import Tokenizer


def learn_task(config: RunConfig) -> Trainable:
    """The task of a new run."""
    if isinstance(config.task, ForecastConfig):
        return Forecast.learn(config.task, config.data)
    return build_task(config.task, *learn_tokenizers(config))


def load_task(config: TaskConfig, folder: Path) -> Trainable:
    """The task of a run that is there, from what its `save` wrote."""
    if isinstance(config, ForecastConfig):
        return Forecast.load(config, folder)
    source = load_tokenizer(folder, "source") if (folder / "source.json").exists() else None
    return build_task(config, source, load_tokenizer(folder, "target"))


def build_task(config: TokenTaskConfig, source: Tokenizer | None, target: Tokenizer) -> TokenTask:
    match config:
        case TranslationConfig(scores=scores, tag_side=tag_side):
            assert source is not None, "translation reads a source"
            return Translation(source, target, scores, tag_side)
        case LabelsConfig(scores=scores):
            assert source is not None, "there is a source to label"
            return Labels(source, target, scores)
        case LanguageModelConfig():
            return LanguageModel(target)
        case CaptioningConfig(size=size, margin=margin):
            return Captioning(target, size, margin)
        case _:
            assert_never(config)
