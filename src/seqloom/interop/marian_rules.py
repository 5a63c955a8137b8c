"""Checks whether a run can be written in the Marian format of Hugging Face, and lists why not.

CTranslate2 also loads this format, but only if encoder and decoder have the same number of heads
and the first input of the decoder is a vector of zeros. A run must satisfy these conditions too.
"""

from collections.abc import Iterator

from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.task import TranslationConfig
from seqloom.interop.text_rules import tokenizer_reasons
from seqloom.text.tokenizer import Tokenizer


def marian_reasons(config: RunConfig, source: Tokenizer | None, target: Tokenizer) -> list[str]:
    """List the reasons why a run has no equivalent in the Marian format.

    The list is empty if the run has an equivalent.
    """
    return [*_recipe_reasons(config), *tokenizer_reasons(source, target)]


def _recipe_reasons(config: RunConfig) -> Iterator[str]:
    encoder, decoder = config.model.encoder, config.model.decoder
    if not isinstance(config.task, TranslationConfig):
        yield f"task.kind: '{config.task.kind}' is not translation"
    elif config.task.tag_side == "target":
        yield "task.tag_side: Marian reads the tag in the source; train with tag_side = 'source'"
    if not config.text.shared:
        yield "text.shared: source and target need one vocabulary; train with shared = true"
    if config.model.tie != "all":
        yield "model.tie: all embeddings must be one matrix; train with tie = 'all'"
    yield from encoder.marian_problems()
    yield from decoder.marian_problems()
    for setting, value in encoder.layer_shape.items():
        if setting in decoder.layer_shape and value != decoder.layer_shape[setting]:
            yield f"model.encoder.{setting} and model.decoder.{setting}: must be equal"
