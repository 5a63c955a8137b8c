"""The recurrent parts of `build.py`, and what recurrent decoders share with others."""

from typing import assert_never

from torch import nn

from seqloom.config.schema.attention import AttentionConfig
from seqloom.config.schema.image import ConvolutionEncoderConfig, PatchEncoderConfig
from seqloom.config.schema.model import ModelConfig, NoEncoderConfig
from seqloom.config.schema.recurrent import RecurrentDecoderConfig, RecurrentEncoderConfig
from seqloom.config.schema.transformer import TransformerDecoderConfig, TransformerEncoderConfig
from seqloom.models.handover import Handover, LayerHandover, WholeHandover
from seqloom.models.recurrent import RecurrentDecoder, RecurrentDecoderParts
from seqloom.nn.build import build_attention, build_positions
from seqloom.nn.copying import Copying
from seqloom.nn.dropout import build_dropout
from seqloom.nn.embedding import Embedder, Lookup, Readout
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.recurrent import RecurrentLayer


def build_recurrent_decoder(
    config: ModelConfig,
    part: RecurrentDecoderConfig,
    lookup: Lookup,
    vocabulary: int,
    tied: nn.Parameter | None,
) -> RecurrentDecoder:
    """The decoder a recipe describes; tied: the matrix that its output layer shares."""
    embedder = recurrent_embedder(part, lookup)
    attention = (
        cross_attention(config, part.attention, part.width)
        if isinstance(part.attention, AttentionConfig)
        else None
    )
    context = 0 if attention is None else attention.plan.context_width
    summary = summary_width(config)
    widths = []
    for level in range(part.layers):
        width = embedder.width if level == 0 else part.width
        width += context if level == 0 and "input" in part.context else 0
        width += summary if level == 0 and "input" in part.summary else 0
        width += context if level == 1 and "layer" in part.context else 0
        widths.append(width)
    layers = recurrent_layers(part, widths)
    features = part.width
    features += context if "readout" in part.context else 0
    features += summary if "readout" in part.summary else 0
    features += embedder.width if part.readout_input else 0
    return RecurrentDecoder(
        RecurrentDecoderParts(
            embedder=embedder,
            layers=layers,
            handover=_handover(config, part, layers[0].state_width),
            attention=attention,
            asks_with_previous=part.query == "previous",
            context_uses=frozenset(part.context),
            summary_uses=frozenset(part.summary),
            readout=Readout(
                features, vocabulary, lookup.width if part.readout == "tanh" else None, tied
            ),
            readout_sees_input=part.readout_input,
            copying=build_copying(config, part, features),
            dropout=build_dropout(part.dropout, part.locked_dropout),
        )
    )


def recurrent_embedder(
    part: RecurrentEncoderConfig | RecurrentDecoderConfig, lookup: Lookup
) -> Embedder:
    """What a recurrent network reads: tokens and their positions."""
    positions = build_positions(part.positions, lookup.width)
    return Embedder(lookup, positions, None, part.dropout, part.locked_dropout)


def recurrent_layers(
    part: RecurrentEncoderConfig | RecurrentDecoderConfig, widths: list[int]
) -> list[RecurrentLayer]:
    """widths: of what each layer reads"""
    return [RecurrentLayer(part.cell, width, part.width, part.weight_dropout) for width in widths]


def _handover(config: ModelConfig, part: RecurrentDecoderConfig, state_width: int) -> Handover:
    match part.handover:
        case "none":
            return Handover(part.layers, state_width)
        case "whole":
            return WholeHandover(part.layers, state_width)
        case "mlp":
            depth = (
                config.encoder.layers if isinstance(config.encoder, RecurrentEncoderConfig) else 1
            )
            return LayerHandover(summary_width(config) * depth, part.layers, state_width)
        case _:
            assert_never(part.handover)


def summary_width(config: ModelConfig) -> int:
    """Of one layer of the encoder's summary: an LSTM's cells stand beside its states."""
    match config.encoder:
        case RecurrentEncoderConfig(cell=cell, state_width=width):
            return width * (2 if cell == "lstm" else 1)
        case TransformerEncoderConfig(width=width) | PatchEncoderConfig(width=width):
            return width
        case ConvolutionEncoderConfig(width=width):
            return width
        case NoEncoderConfig():
            return 0
        case _:
            assert_never(config.encoder)


def cross_attention(
    config: ModelConfig, attention: AttentionConfig, width: int
) -> MultiHeadAttention | None:
    """A decoder's look at the source; None where there is none."""
    if isinstance(config.encoder, NoEncoderConfig):
        return None
    return build_attention(attention, width, config.encoder.state_width)


def build_copying(
    config: ModelConfig, part: RecurrentDecoderConfig | TransformerDecoderConfig, features: int
) -> Copying | None:
    """A pointer for a decoder whose readout sees so many features, if it copies."""
    if not part.copying or isinstance(config.encoder, NoEncoderConfig):
        return None
    return Copying(features, config.encoder.state_width, part.width)
