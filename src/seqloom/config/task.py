"""[task]: what the job means."""

from typing import Annotated, Literal

from pydantic import Field

from seqloom.config.section import Section


class TranslationConfig(Section):
    """A source sequence of tokens to a target sequence of tokens."""

    kind: Literal["translation"] = "translation"


class LanguageModelConfig(Section):
    """Nothing to a sequence of tokens: make sentences up, or finish them."""

    kind: Literal["language-model"] = "language-model"


TaskConfig = Annotated[TranslationConfig | LanguageModelConfig, Field(discriminator="kind")]
