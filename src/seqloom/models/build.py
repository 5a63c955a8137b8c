"""ModelConfig + Signature → Model: which parts there are and how they fit together."""

from typing import assert_never

from torch import nn

from seqloom.config.schema.embedding import (
    OneHotEmbeddingConfig,
    OneHotPositionsConfig,
    RotaryPositionsConfig,
)
from seqloom.config.schema.image import ConvolutionEncoderConfig, PatchEncoderConfig
from seqloom.config.schema.labels import LabelsDecoderConfig
from seqloom.config.schema.model import ImageEncoderConfig, ModelConfig, NoEncoderConfig
from seqloom.config.schema.recurrent import RecurrentDecoderConfig, RecurrentEncoderConfig
from seqloom.config.schema.transformer import (
    LayerStackConfig,
    TransformerDecoderConfig,
    TransformerEncoderConfig,
    TransformerLayersConfig,
)
from seqloom.core.errors import ConfigError
from seqloom.core.signature import Pixels, Signature, Tokens, Vectors
from seqloom.models.build_recurrent import (
    build_copying,
    build_recurrent_decoder,
    cross_attention,
    recurrent_embedder,
    recurrent_layers,
    summary_width,
)
from seqloom.models.image import ConvolutionEncoder, PatchEncoder
from seqloom.models.interface import DecoderModule, EncoderModule
from seqloom.models.labels import (
    LabelDecoder,
    LabelDecoderParts,
    read_last,
    read_mean,
    read_positions,
)
from seqloom.models.recurrent import RecurrentEncoder
from seqloom.models.seq2seq import Model
from seqloom.models.transformer import TransformerDecoder, TransformerEncoder, last_norm
from seqloom.nn.build import build_attention, build_feedforward, build_lookup, build_positions
from seqloom.nn.convolution import Crop, Patches, ResidualNetwork
from seqloom.nn.dropout import build_dropout
from seqloom.nn.embedding import Embedder, LearnedLookup, Lookup, Readout
from seqloom.nn.labels import LabelReadout
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.transformer import DecoderLayer, EncoderLayer
from seqloom.text.vocabulary import END, PAD, START


def build_model(config: ModelConfig, signature: Signature) -> Model:
    """The model a recipe describes, for what goes in and comes out of it."""
    problems = _misfits(config, signature)
    if problems:
        raise ConfigError("\n".join(problems))
    encoder = build_encoder(config, signature)
    return Model(encoder, build_decoder(config, signature, encoder))


def _misfits(config: ModelConfig, signature: Signature) -> list[str]:
    """What only the vocabularies can tell: one-hot positions too many for one-hot tokens."""
    sides = (
        ("encoder", config.encoder, signature.source),
        ("decoder", config.decoder, signature.target),
    )
    return [
        f"model.{side}.positions: one-hot positions up to {part.positions.max_length} cannot be "
        f"added to one-hot tokens of a vocabulary of {ids.count}; use join = 'append', or "
        f"max_length = {ids.count} or less"
        for side, part, ids in sides
        if not isinstance(part, NoEncoderConfig | ImageEncoderConfig | LabelsDecoderConfig)
        and isinstance(ids, Tokens)
        and isinstance(part.embedding, OneHotEmbeddingConfig)
        and isinstance(part.positions, OneHotPositionsConfig)
        and part.positions.join == "add"
        and part.positions.max_length > ids.count
    ]


def build_encoder(config: ModelConfig, signature: Signature) -> EncoderModule | None:
    """What reads the source; None if there is nothing to read."""
    part = config.encoder
    match part:
        case NoEncoderConfig():
            return None
        case RecurrentEncoderConfig():
            assert isinstance(signature.source, Tokens | Vectors)
            small = config.tie == "all"
            lookup = build_lookup(part.embedding, signature.source, part.width, small)
            embedder = recurrent_embedder(part, lookup)
            widths = [embedder.width] + [part.state_width] * (part.layers - 1)
            directions = {"forward": (1, 0), "backward": (0, 1), "both": (1, 1)}[part.direction]
            forwards, backwards = (
                recurrent_layers(part, widths) if wanted else [] for wanted in directions
            )
            return RecurrentEncoder(
                embedder, forwards, backwards, build_dropout(part.dropout, part.locked_dropout)
            )
        case TransformerEncoderConfig():
            assert isinstance(signature.source, Tokens | Vectors)
            embedder = _transformer_embedder(part, signature.source)
            rotary = isinstance(part.positions, RotaryPositionsConfig)
            layers = _encoder_layers(part, rotary, part.residual_gap)
            return TransformerEncoder(embedder, layers, part.norm)
        case ConvolutionEncoderConfig():
            assert isinstance(signature.source, Pixels)
            network = ResidualNetwork(list(part.channels), part.blocks)
            crop = Crop(signature.source.width, part.zoom, part.light)
            return ConvolutionEncoder(crop, network, part.width, part.dropout)
        case PatchEncoderConfig():
            assert isinstance(signature.source, Pixels)
            size = signature.source.width
            return PatchEncoder(
                Crop(size, part.zoom, part.light),
                Patches(size, part.patch_size, part.width),
                _encoder_layers(part, rotary=False),
                last_norm(part.norm, part.width),
                part.dropout,
            )
        case _:
            assert_never(part)


def build_decoder(
    config: ModelConfig, signature: Signature, encoder: EncoderModule | None
) -> DecoderModule:
    """What puts out the target; the encoder is asked only for a matrix to share."""
    part = config.decoder
    match part:
        case RecurrentDecoderConfig():
            small = config.tie != "none"
            lookup = build_lookup(part.embedding, _fed(signature), part.width, small)
            tied = _tie(config, lookup, encoder)
            return build_recurrent_decoder(config, part, lookup, _put_out(signature.target), tied)
        case TransformerDecoderConfig():
            embedder = _transformer_embedder(part, _fed(signature))
            tied = _tie(config, embedder.lookup, encoder)
            readout = Readout(part.width, _put_out(signature.target), None, tied)
            layers = [
                DecoderLayer(
                    _self_attention(part),
                    cross_attention(config, part.attention, part.width),
                    build_feedforward(part),
                    part.norm,
                    part.dropout,
                )
                for _ in range(part.layers)
            ]
            copying = build_copying(config, part, part.width)
            return TransformerDecoder(embedder, layers, part.norm, readout, copying)
        case LabelsDecoderConfig():
            return _label_decoder(config, part, _put_out(signature.target))
        case _:
            assert_never(part)


def _label_decoder(config: ModelConfig, part: LabelsDecoderConfig, labels: int) -> LabelDecoder:
    assert not isinstance(config.encoder, NoEncoderConfig)
    reading = {"positions": read_positions, "last": read_last, "mean": read_mean}[part.reads]
    width = summary_width(config) if part.reads == "last" else config.encoder.state_width
    previous = None
    if part.previous:
        previous = LearnedLookup(labels, part.embedding, noise=0.0, small=False)
        width += previous.width
    readout = LabelReadout(width, labels, part.hidden, END, never=(PAD, START))
    return LabelDecoder(LabelDecoderParts(reading, previous, readout, part.dropout))


def _tie(config: ModelConfig, lookup: Lookup, encoder: EncoderModule | None) -> nn.Parameter | None:
    """Make embeddings one matrix as the config says; returns the one the output layer shares."""
    if config.tie == "none":
        return None
    assert isinstance(lookup, LearnedLookup)
    if config.tie == "all":
        assert encoder is not None
        embedder = encoder.get_submodule("embedder")
        assert isinstance(embedder, Embedder)
        assert isinstance(embedder.lookup, LearnedLookup)
        embedder.lookup.table.weight = lookup.weight
    return lookup.weight


def _fed(signature: Signature) -> Tokens | Vectors:
    """What a decoder is fed: what was put out, and beside numbers their context."""
    target = signature.target
    return target if isinstance(target, Tokens) else Vectors(target.width + signature.context)


def _put_out(target: Tokens | Vectors) -> int:
    """Scores of tokens, or numbers."""
    return target.count if isinstance(target, Tokens) else target.width


def _transformer_embedder(part: TransformerLayersConfig, read: Tokens | Vectors) -> Embedder:
    # Small entries times √d, shared with an output layer or not (Vaswani et al. 2017, section 3.4).
    lookup = build_lookup(part.embedding, read, part.width, small=True)
    return Embedder(lookup, build_positions(part.positions, lookup.width), part.width, part.dropout)


def _encoder_layers(
    part: LayerStackConfig, rotary: bool, gap: int | None = None
) -> list[EncoderLayer]:
    """gap: the layer, counted from 1, without a way around its attention"""
    return [
        EncoderLayer(
            build_attention(part.attention, part.width, part.width, rotary=rotary),
            build_feedforward(part),
            part.norm,
            part.dropout,
            gap=number == gap,
        )
        for number in range(1, part.layers + 1)
    ]


def _self_attention(part: TransformerLayersConfig) -> MultiHeadAttention:
    rotary = isinstance(part.positions, RotaryPositionsConfig)
    return build_attention(part.attention, part.width, part.width, rotary=rotary)
