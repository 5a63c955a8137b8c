"""TaskConfig + tokenizers → Task."""

from typing import assert_never

from seqloom.config.task import LanguageModelConfig, TaskConfig, TranslationConfig
from seqloom.tasks.language_model import LanguageModel
from seqloom.tasks.task import Task
from seqloom.tasks.translation import Translation
from seqloom.text.tokenizer import Tokenizer


def build_task(config: TaskConfig, source: Tokenizer | None, target: Tokenizer) -> Task:
    match config:
        case TranslationConfig():
            assert source is not None, "translation reads a source"
            return Translation(source, target)
        case LanguageModelConfig():
            return LanguageModel(target)
        case _:
            assert_never(config)
