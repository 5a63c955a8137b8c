"""ModelConfig + Signature → Model. The only file that knows both the switches and the parts."""

from typing import assert_never

from torch import nn

from seqloom.config.attention import (
    AdditiveScoreConfig,
    AttentionConfig,
    BilinearScoreConfig,
    DotScoreConfig,
    RbfScoreConfig,
)
from seqloom.config.model import (
    EmbeddingConfig,
    LearnedEmbeddingConfig,
    LearnedPositionsConfig,
    ModelConfig,
    NoEncoderConfig,
    NoPositionsConfig,
    OneHotEmbeddingConfig,
    OneHotPositionsConfig,
    PositionsConfig,
    RecurrentDecoderConfig,
    RecurrentEncoderConfig,
    RotaryPositionsConfig,
    SinusoidalPositionsConfig,
    TransformerDecoderConfig,
    TransformerEncoderConfig,
    TransformerLayersConfig,
)
from seqloom.core.errors import ConfigError
from seqloom.core.signature import Signature, Tokens
from seqloom.models.interface import DecoderModule, EncoderModule
from seqloom.models.recurrent import (
    Handover,
    LayerHandover,
    RecurrentDecoder,
    RecurrentDecoderParts,
    RecurrentEncoder,
    WholeHandover,
)
from seqloom.models.seq2seq import Model
from seqloom.models.transformer import TransformerDecoder, TransformerEncoder
from seqloom.nn.attention import AdditiveScore, BilinearScore, DotScore, RbfScore, Score
from seqloom.nn.embedding import Embedder, LearnedLookup, Lookup, OneHotLookup, Readout
from seqloom.nn.multihead import AttentionPlan, MultiHeadAttention
from seqloom.nn.positions import (
    LearnedPositions,
    OneHotPositions,
    Positions,
    SinusoidalPositions,
)
from seqloom.nn.recurrent import RecurrentLayer
from seqloom.nn.transformer import DecoderLayer, EncoderLayer, FeedForward


def build_model(config: ModelConfig, signature: Signature) -> Model:
    encoder = build_encoder(config, signature)
    return Model(encoder, build_decoder(config, signature, encoder))


def build_encoder(config: ModelConfig, signature: Signature) -> EncoderModule | None:
    part = config.encoder
    match part:
        case NoEncoderConfig():
            return None
        case RecurrentEncoderConfig():
            assert isinstance(signature.source, Tokens)
            small = config.tie == "all"
            lookup = _lookup(part.embedding, signature.source.count, part.width, small)
            embedder = Embedder(
                lookup, _positions(part.positions, lookup.width), None, part.dropout
            )
            widths = [embedder.width] + [part.state_width] * (part.layers - 1)
            directions = {"forward": (1, 0), "backward": (0, 1), "both": (1, 1)}[part.direction]
            forwards, backwards = (
                [RecurrentLayer(part.cell, width, part.width) for width in widths] if wanted else []
                for wanted in directions
            )
            return RecurrentEncoder(embedder, forwards, backwards, part.dropout)
        case TransformerEncoderConfig():
            assert isinstance(signature.source, Tokens)
            embedder = _transformer_embedder(part, signature.source.count)
            layers = [
                EncoderLayer(_self_attention(part), _feedforward(part), part.norm, part.dropout)
                for _ in range(part.layers)
            ]
            return TransformerEncoder(embedder, layers, part.norm)
        case _:
            assert_never(part)


def build_decoder(
    config: ModelConfig, signature: Signature, encoder: EncoderModule | None
) -> DecoderModule:
    part = config.decoder
    match part:
        case RecurrentDecoderConfig():
            small = config.tie != "none"
            lookup = _lookup(part.embedding, signature.target.count, part.width, small)
            tied = _tie(config, lookup, encoder)
            return _recurrent_decoder(config, part, lookup, signature.target.count, tied)
        case TransformerDecoderConfig():
            embedder = _transformer_embedder(part, signature.target.count)
            tied = _tie(config, embedder.lookup, encoder)
            readout = Readout(part.width, signature.target.count, None, tied)
            layers = [
                DecoderLayer(
                    _self_attention(part),
                    _cross_attention(config, part.attention),
                    _feedforward(part),
                    part.norm,
                    part.dropout,
                )
                for _ in range(part.layers)
            ]
            return TransformerDecoder(embedder, layers, part.norm, readout)
        case _:
            assert_never(part)


def _recurrent_decoder(
    config: ModelConfig,
    part: RecurrentDecoderConfig,
    lookup: Lookup,
    vocabulary: int,
    tied: nn.Parameter | None,
) -> RecurrentDecoder:
    embedder = Embedder(lookup, _positions(part.positions, lookup.width), None, part.dropout)
    attention = (
        _cross_attention(config, part.attention)
        if isinstance(part.attention, AttentionConfig)
        else None
    )
    context = 0 if attention is None else attention.plan.context_width
    summary = _summary_width(config)
    widths = []
    for level in range(part.layers):
        width = embedder.width if level == 0 else part.width
        width += context if level == 0 and "input" in part.context else 0
        width += summary if level == 0 and "input" in part.summary else 0
        width += context if level == 1 and "layer" in part.context else 0
        widths.append(width)
    layers = [RecurrentLayer(part.cell, width, part.width) for width in widths]
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
            dropout=part.dropout,
        )
    )


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
            return LayerHandover(_summary_width(config) * depth, part.layers, state_width)
        case _:
            assert_never(part.handover)


def _summary_width(config: ModelConfig) -> int:
    """Of one layer of the encoder's summary: an LSTM's cells stand beside its states."""
    match config.encoder:
        case RecurrentEncoderConfig(cell=cell, state_width=width):
            return width * (2 if cell == "lstm" else 1)
        case TransformerEncoderConfig(width=width):
            return width
        case NoEncoderConfig():
            return 0
        case _:
            assert_never(config.encoder)


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


def _lookup(config: EmbeddingConfig, vocabulary: int, width: int, small: bool) -> Lookup:
    match config:
        case OneHotEmbeddingConfig():
            return OneHotLookup(vocabulary)
        case LearnedEmbeddingConfig(width=own, noise=noise):
            return LearnedLookup(vocabulary, own or width, noise, small)
        case _:
            assert_never(config)


def _positions(config: PositionsConfig, width: int) -> Positions:
    match config:
        case NoPositionsConfig() | RotaryPositionsConfig():
            return Positions()
        case OneHotPositionsConfig(max_length=longest, join=join):
            if join == "add" and width < longest:  # only the vocabulary could tell
                raise ConfigError(
                    f"positions: one-hot positions up to {longest} cannot be added to one-hot "
                    f"tokens of a vocabulary of {width}; use join = 'append', or max_length = "
                    f"{width} or less"
                )
            return OneHotPositions(join, longest if join == "append" else width, longest)
        case SinusoidalPositionsConfig(join=join, width=own):
            return SinusoidalPositions(join, own if join == "append" else width)
        case LearnedPositionsConfig(max_length=longest, join=join, width=own):
            return LearnedPositions(join, own if join == "append" else width, longest)
        case _:
            assert_never(config)


def _transformer_embedder(part: TransformerLayersConfig, vocabulary: int) -> Embedder:
    # Small entries times √d, shared with an output layer or not (Vaswani et al. 2017, section 3.4).
    lookup = _lookup(part.embedding, vocabulary, part.width, small=True)
    return Embedder(lookup, _positions(part.positions, lookup.width), part.width, part.dropout)


def _feedforward(part: TransformerLayersConfig) -> FeedForward:
    return FeedForward(part.width, part.feedforward, part.activation, part.feedforward_dropout)


def _self_attention(part: TransformerLayersConfig) -> MultiHeadAttention:
    rotary = isinstance(part.positions, RotaryPositionsConfig)
    return _attention(part.attention, part.width, part.width, rotary=rotary)


def _cross_attention(config: ModelConfig, attention: AttentionConfig) -> MultiHeadAttention | None:
    if isinstance(config.encoder, NoEncoderConfig):
        return None
    return _attention(attention, config.decoder.width, config.encoder.state_width)


def _attention(
    config: AttentionConfig, query_width: int, key_width: int, rotary: bool = False
) -> MultiHeadAttention:
    plan = AttentionPlan(
        query_width=query_width,
        key_width=key_width,
        width=config.width or query_width,
        heads=config.heads,
        projection=config.projection,
        learned_values=config.values == "learned",
        merged_width=query_width if config.merge else None,
    )
    if config.selection == "nearest":
        # The closest key is the best one under the score that measures distance.
        return MultiHeadAttention(plan, RbfScore(1.0), "argmax", rotary, config.dropout)
    return MultiHeadAttention(plan, _score(config, plan), config.selection, rotary, config.dropout)


def _score(config: AttentionConfig, plan: AttentionPlan) -> Score:
    score = config.score
    match score:
        case DotScoreConfig(scale=scale):
            return DotScore(scale, plan.query_head)
        case BilinearScoreConfig():
            return BilinearScore(plan.heads, plan.query_head, plan.key_head)
        case AdditiveScoreConfig(width=width):
            return AdditiveScore(plan.heads, plan.query_head, plan.key_head, width)
        case RbfScoreConfig(gamma=gamma):
            return RbfScore(gamma)
        case _:
            assert_never(score)
