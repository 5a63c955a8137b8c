"""Checks whether a run can be written in the Marian format of Hugging Face, and lists why not.

CTranslate2 also loads this format, but only if encoder and decoder have the same number of heads
and the first input of the decoder is a vector of zeros. A run must satisfy these conditions too.
"""

from collections.abc import Iterator

from seqloom.config.schema.attention import TRANSFORMER_ATTENTION
from seqloom.config.schema.embedding import SinusoidalPositionsConfig
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.task import TranslationConfig
from seqloom.config.schema.transformer import (
    TransformerDecoderConfig,
    TransformerEncoderConfig,
)
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
    if isinstance(encoder, TransformerEncoderConfig):
        yield from _layer_reasons("model.encoder", encoder)
        if encoder.remove_residual is not None:
            yield "model.encoder.remove_residual: is not possible; train without it"
    else:
        yield f"model.encoder.kind: '{encoder.kind}' is not possible; train a 'transformer'"
    if isinstance(decoder, TransformerDecoderConfig):
        yield from _layer_reasons("model.decoder", decoder)
        yield from _decoder_reasons(decoder)
    else:
        yield f"model.decoder.kind: '{decoder.kind}' is not possible; train a 'transformer'"
    if isinstance(encoder, TransformerEncoderConfig) and isinstance(
        decoder, TransformerDecoderConfig
    ):
        if encoder.width != decoder.width:
            yield "model.encoder.width and model.decoder.width: must be equal"
        if encoder.attention.heads != decoder.attention.heads:
            yield "model.encoder.attention.heads and model.decoder.attention.heads: must be equal"
        if encoder.activation != decoder.activation:
            yield "model.encoder.activation and model.decoder.activation: must be equal"


def _layer_reasons(
    name: str, part: TransformerEncoderConfig | TransformerDecoderConfig
) -> Iterator[str]:
    if part.norm != "post":
        yield f"{name}.norm: Marian normalises after each sublayer; train with norm = 'post'"
    positions = part.positions
    expected = SinusoidalPositionsConfig(frequencies="vaswani", layout="halves")
    if positions != expected:
        yield (
            f"{name}.positions: train with positions = {{ kind = 'sinusoidal', frequencies = "
            "'vaswani', layout = 'halves' }"
        )
    embedding = part.embedding
    if not embedding.is_learned:
        yield f"{name}.embedding.kind: train with embedding.kind = 'learned'"
    elif embedding.own_width not in (None, part.width):
        yield f"{name}.embedding.width: must equal {name}.width; remove it"
    attention = part.attention
    for setting in ("score", "projection", "projection_layers", "values", "selection"):
        value = getattr(TRANSFORMER_ATTENTION, setting)
        if getattr(attention, setting) != value:
            yield f"{name}.attention.{setting}: must be the default of Transformers; remove it"
    if attention.width not in (None, part.width):
        yield f"{name}.attention.width: must equal {name}.width; remove it"
    if not attention.output_projection:
        yield f"{name}.attention.output_projection: must be true"


def _decoder_reasons(part: TransformerDecoderConfig) -> Iterator[str]:
    if part.copying:
        yield "model.decoder.copying: is not possible; train with copying = false"
    if part.start != "zero":
        yield "model.decoder.start: the decoder must start from zeros; train with start = 'zero'"
    if part.special_outputs:
        yield (
            "model.decoder.special_outputs: Marian has no logits for padding and start; train with "
            "special_outputs = false"
        )
