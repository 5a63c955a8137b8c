"""Builds a model from its config and a `Signature`, which describes its inputs and outputs."""

from typing import assert_never

from torch import nn

from seqloom.config.schema.attention import (
    AttentionConfig,
    FixedScoreConfig,
    PositionScoreConfig,
)
from seqloom.config.schema.image import ConvolutionEncoderConfig, PatchEncoderConfig
from seqloom.config.schema.model import (
    DecoderExtensionConfig,
    EncoderExtensionConfig,
    ImageEncoderConfig,
    LabelsDecoderConfig,
    ModelConfig,
    NoEncoderConfig,
)
from seqloom.config.schema.recurrent import RecurrentDecoderConfig, RecurrentEncoderConfig
from seqloom.config.schema.transformer import (
    LayerStackConfig,
    TransformerDecoderConfig,
    TransformerEncoderConfig,
    TransformerLayersConfig,
)
from seqloom.core.errors import ConfigError
from seqloom.core.signature import Pixels, Signature, Tokens, Vectors
from seqloom.models.build_extension import build_extension_decoder, build_extension_encoder
from seqloom.models.images import ConvolutionEncoder, PatchEncoder
from seqloom.models.interface import DecoderModule, EncoderModule
from seqloom.models.labels import LabelDecoder, select_last, select_mean, select_positions
from seqloom.models.recurrent import (
    CopiedInitialState,
    FlattenedInitialState,
    InitialState,
    ProjectedInitialState,
    RecurrentDecoder,
    RecurrentEncoder,
)
from seqloom.models.seq2seq import Model
from seqloom.models.transformer import TransformerDecoder, TransformerEncoder, build_final_norm
from seqloom.nn.build import build_attention, build_feedforward, build_lookup, build_positions
from seqloom.nn.convolution import Crop, Patches, ResidualNetwork
from seqloom.nn.copying import Copying
from seqloom.nn.dropout import build_dropout
from seqloom.nn.embedding import (
    ConstantLookup,
    Embedder,
    LabelReadout,
    LearnedLookup,
    Lookup,
    Readout,
    ReplacedToken,
)
from seqloom.nn.multihead import MultiHeadAttention
from seqloom.nn.recurrent import RecurrentLayer
from seqloom.nn.transformer import DecoderLayer, EncoderLayer
from seqloom.text.vocabulary import END, PAD, START


def build_model(config: ModelConfig, signature: Signature) -> Model:
    """Build the model that the config describes, for the signature's source and target types.

    Raise a `ConfigError` in three cases:

    - A part of the model that is defined outside seqloom fails or returns a wrong type or shape.
    - One-hot positions are added to one-hot tokens (`join = "add"`), but the positions'
      `max_length` is larger than the vocabulary.
    - The source is an image, and the decoder's attention score supports fewer source positions than
      the image has grid cells.
    """
    problems = _vocabulary_problems(config, signature) + _grid_problems(config, signature)
    if problems:
        raise ConfigError("\n".join(problems))
    encoder = build_encoder(config, signature)
    return Model(encoder, build_decoder(config, signature, encoder))


def _vocabulary_problems(config: ModelConfig, signature: Signature) -> list[str]:
    """Check that one-hot positions which are added to one-hot tokens are not wider than the tokens.

    Returns an error message for the encoder or the decoder, or for both, if they fail. The config
    alone is not enough for this check, because the width of one-hot tokens is the vocabulary size.
    """
    sides = (
        ("encoder", config.encoder, signature.source),
        ("decoder", config.decoder, signature.target),
    )
    return [
        f"model.{side}.{problem}"
        for side, part, ids in sides
        if isinstance(
            part,
            RecurrentEncoderConfig
            | TransformerEncoderConfig
            | RecurrentDecoderConfig
            | TransformerDecoderConfig,
        )
        and isinstance(ids, Tokens)
        and part.embedding.vector_width(part.width) is None
        for problem in part.positions.width_problems(
            ids.count, f"one-hot tokens of a vocabulary of {ids.count}"
        )
    ]


def _grid_problems(config: ModelConfig, signature: Signature) -> list[str]:
    """Return an error message if the attention score supports too few source positions.

    Some attention scores have a maximum source length. It must be at least the number of grid cells
    of an image.
    """
    encoder, decoder = config.encoder, config.decoder
    if not isinstance(encoder, ImageEncoderConfig):
        return []
    if not isinstance(decoder, RecurrentDecoderConfig | TransformerDecoderConfig):
        return []
    if not isinstance(decoder.attention, AttentionConfig):
        return []
    cells = _grid_cells(encoder, signature)
    match decoder.attention.score:
        case FixedScoreConfig(max_length=limit):
            setting = "max_length"
        case PositionScoreConfig(max_source_length=limit):
            setting = "max_source_length"
        case _:
            return []
    if cells <= limit:
        return []
    return [
        f"model.decoder.attention.score.{setting}: an image has {cells} cells, but {setting} is "
        f"{limit}; set it to {cells}"
    ]


def _grid_cells(config: ImageEncoderConfig, signature: Signature) -> int:
    """Return the number of grid cells into which the encoder divides an image."""
    assert isinstance(signature.source, Pixels)
    side = signature.source.width
    match config:
        case ConvolutionEncoderConfig(channels=channels):
            for _ in channels:
                side = (side + 1) // 2  # each stage halves the side and rounds up
        case PatchEncoderConfig(patch_size=patch_size):
            side //= patch_size
        case _:
            assert_never(config)
    return side * side


def build_encoder(config: ModelConfig, signature: Signature) -> EncoderModule | None:
    """Build the encoder. Return None if the model has no source."""
    part = config.encoder
    match part:
        case NoEncoderConfig():
            return None
        case RecurrentEncoderConfig():
            return _build_recurrent_encoder(config, part, signature)
        case TransformerEncoderConfig():
            assert isinstance(signature.source, Tokens | Vectors)
            embedder = _transformer_embedder(part, signature.source)
            rotary = part.positions.rotates
            layers = _encoder_layers(part, rotary, part.remove_residual)
            return TransformerEncoder(embedder, layers, part.norm)
        case ConvolutionEncoderConfig():
            assert isinstance(signature.source, Pixels)
            network = ResidualNetwork(list(part.channels), part.blocks)
            size = signature.source.width
            crop = Crop(size, part.crop_scale, part.color_jitter, part.mirror)
            return ConvolutionEncoder(crop, network, part.width, part.dropout)
        case PatchEncoderConfig():
            assert isinstance(signature.source, Pixels)
            size = signature.source.width
            return PatchEncoder(
                Crop(size, part.crop_scale, part.color_jitter, part.mirror),
                Patches(size, part.patch_size, part.width),
                _encoder_layers(part, rotary=False),
                build_final_norm(part.norm, part.width),
                part.dropout,
            )
        case EncoderExtensionConfig():
            return build_extension_encoder(part, signature)
        case _:
            assert_never(part)


def build_decoder(
    config: ModelConfig, signature: Signature, encoder: EncoderModule | None
) -> DecoderModule:
    """Build the decoder.

    With `model.tie = "all"`, also make the encoder use the decoder's embedding weight.
    """
    part = config.decoder
    match part:
        case RecurrentDecoderConfig():
            return _build_recurrent_decoder(config, part, signature, encoder)
        case TransformerDecoderConfig():
            return _build_transformer_decoder(config, part, signature, encoder)
        case LabelsDecoderConfig():
            return _build_label_decoder(config, part, _output_count(signature.target))
        case DecoderExtensionConfig():
            width = 0 if isinstance(config.encoder, NoEncoderConfig) else config.encoder.state_width
            return build_extension_decoder(part, signature, encoder, width)
        case _:
            assert_never(part)


# Recurrent networks


def _build_recurrent_encoder(
    config: ModelConfig, part: RecurrentEncoderConfig, signature: Signature
) -> RecurrentEncoder:
    assert isinstance(signature.source, Tokens | Vectors)
    scaled = config.tie == "all"
    lookup = build_lookup(part.embedding, signature.source, part.width, scaled)
    embedder = _recurrent_embedder(part, lookup)
    widths = [embedder.width] + [part.state_width] * (part.layers - 1)
    forward = _recurrent_layers(part, widths) if part.direction != "backward" else []
    backward = _recurrent_layers(part, widths) if part.direction != "forward" else []
    dropout = build_dropout(part.dropout, part.locked_dropout)
    attention = None
    if isinstance(part.self_attention, AttentionConfig):
        attention = build_attention(part.self_attention, part.state_width, part.state_width)
    residual = part.self_attention_residual
    return RecurrentEncoder(embedder, forward, backward, dropout, attention, residual)


def _build_recurrent_decoder(
    config: ModelConfig,
    part: RecurrentDecoderConfig,
    signature: Signature,
    encoder: EncoderModule | None,
) -> RecurrentDecoder:
    scaled = config.tie != "none"
    lookup = _recurrent_decoder_lookup(part, signature, scaled)
    tied = _tie_embeddings(config, lookup, encoder)
    embedder = _recurrent_embedder(part, lookup)
    attention = (
        _cross_attention(config, part.attention, part.width)
        if isinstance(part.attention, AttentionConfig)
        else None
    )
    context = 0 if attention is None else attention.context_width
    summary = _summary_width(config)
    widths = []
    for level in range(part.layers):
        width = embedder.width if level == 0 else part.width
        width += context if level == 0 and "input" in part.context else 0
        width += summary if level == 0 and "input" in part.summary else 0
        width += context if level == 1 and "layer" in part.context else 0
        widths.append(width)
    layers = _recurrent_layers(part, widths)
    features = part.width
    features += context if "readout" in part.context else 0
    features += summary if "readout" in part.summary else 0
    features += embedder.width if part.readout_input else 0
    return RecurrentDecoder(
        embedder=embedder,
        layers=layers,
        initial_state=_build_initial_state(config, part, signature, layers[0].state_width),
        attention=attention,
        query_is_previous_state=part.query == "previous",
        context_uses=frozenset(part.context),
        summary_uses=frozenset(part.summary),
        readout=Readout(
            features,
            _output_count(signature.target),
            lookup.width if part.readout == "tanh" else None,
            tied,
        ),
        readout_uses_input=part.readout_input,
        copying=_build_copying(config, part, features),
        dropout=build_dropout(part.dropout, part.locked_dropout),
    )


def _recurrent_decoder_lookup(
    part: RecurrentDecoderConfig, signature: Signature, scaled: bool
) -> Lookup:
    if part.feed_output:
        return build_lookup(part.embedding, _input_spec(signature), part.width, scaled)
    target = signature.target
    if isinstance(target, Vectors):
        return ConstantLookup(part.width, ignored=target.width, context=signature.context)
    return ConstantLookup(part.embedding.own_width or part.width)


def _recurrent_embedder(
    part: RecurrentEncoderConfig | RecurrentDecoderConfig, lookup: Lookup
) -> Embedder:
    positions = build_positions(part.positions, lookup.width)
    return Embedder(lookup, positions, None, part.dropout, part.locked_dropout)


def _recurrent_layers(
    part: RecurrentEncoderConfig | RecurrentDecoderConfig, widths: list[int]
) -> list[RecurrentLayer]:
    """Build one recurrent layer for each input width in `widths`."""
    return [RecurrentLayer(part.cell, width, part.width, part.weight_dropout) for width in widths]


def _build_initial_state(
    config: ModelConfig, part: RecurrentDecoderConfig, signature: Signature, state_width: int
) -> InitialState:
    encoder, hidden_layers = config.encoder, part.initial_state_layers - 1
    match part.initial_state:
        case "zeros":
            return InitialState(part.layers, state_width)
        case "copy":
            return CopiedInitialState(part.layers, state_width)
        case "mlp":
            depth = encoder.layers if isinstance(encoder, RecurrentEncoderConfig) else 1
            width = _summary_width(config) * depth
            return ProjectedInitialState(width, part.layers, state_width, hidden_layers)
        case "flattened":
            assert isinstance(encoder, ImageEncoderConfig)
            cells = _grid_cells(encoder, signature)
            return FlattenedInitialState(
                cells, encoder.state_width, part.layers, state_width, hidden_layers
            )
        case _:
            assert_never(part.initial_state)


# Transformers


def _build_transformer_decoder(
    config: ModelConfig,
    part: TransformerDecoderConfig,
    signature: Signature,
    encoder: EncoderModule | None,
) -> TransformerDecoder:
    embedder = _transformer_embedder(part, _input_spec(signature), _replaced_start(part))
    tied = _tie_embeddings(config, embedder.lookup, encoder)
    # PAD and START are the first two ids.
    excluded = 0 if part.special_outputs else START + 1
    readout = Readout(part.width, _output_count(signature.target), None, tied, excluded)
    rotary = part.positions.rotates
    layers = [
        DecoderLayer(
            build_attention(part.attention, part.width, part.width, rotary),
            _cross_attention(config, part.attention, part.width),
            build_feedforward(part),
            part.norm,
            part.dropout,
        )
        for _ in range(part.layers)
    ]
    copying = _build_copying(config, part, part.width)
    return TransformerDecoder(embedder, layers, part.norm, readout, copying)


def _replaced_start(part: TransformerDecoderConfig) -> ReplacedToken | None:
    """Return what the decoder uses as the embedding of START: that of another token, or zeros.

    Return None if START has its own embedding.
    """
    match part.start:
        case "learned":
            return None
        case "zero":
            return ReplacedToken(START, None)
        case "end":
            return ReplacedToken(START, END)
        case "padding":
            return ReplacedToken(START, PAD)
        case _:
            assert_never(part.start)


def _transformer_embedder(
    part: TransformerLayersConfig, inputs: Tokens | Vectors, replaced: ReplacedToken | None = None
) -> Embedder:
    # Embeddings are multiplied by √d even if the output layer does not share them (Vaswani et al.
    # 2017, section 3.4).
    lookup = build_lookup(part.embedding, inputs, part.width, scaled=True, replaced=replaced)
    return Embedder(lookup, build_positions(part.positions, lookup.width), part.width, part.dropout)


def _encoder_layers(
    part: LayerStackConfig, rotary: bool, without_skip: int | None = None
) -> list[EncoderLayer]:
    """Build the layers of an encoder.

    without_skip: index, from 1, of the layer without a skip connection around its attention. None:
                  every layer has a skip connection. Default: None
    """
    return [
        EncoderLayer(
            build_attention(part.attention, part.width, part.width, rotary),
            build_feedforward(part),
            part.norm,
            part.dropout,
            skip=index != without_skip,
        )
        for index in range(1, part.layers + 1)
    ]


# Labels


def _build_label_decoder(
    config: ModelConfig, part: LabelsDecoderConfig, labels: int
) -> LabelDecoder:
    assert not isinstance(config.encoder, NoEncoderConfig)
    selectors = {"none": select_positions, "last": select_last, "mean": select_mean}
    width = _summary_width(config) if part.pooling == "last" else config.encoder.state_width
    previous = None
    if part.previous:
        previous = LearnedLookup(labels, part.embedding, noise=0.0, scaled=False)
        width += previous.width
    readout = LabelReadout(width, labels, part.hidden, END, impossible=(PAD, START))
    return LabelDecoder(selectors[part.pooling], previous, readout, part.dropout)


# Shared by several decoders


def _input_spec(signature: Signature) -> Tokens | Vectors:
    """Return the type of the decoder input: tokens or vectors.

    An input vector contains the previous target vector and the context values of the step. Context
    values are known in advance and not predicted.
    """
    target = signature.target
    return target if isinstance(target, Tokens) else Vectors(target.width + signature.context)


def _output_count(target: Tokens | Vectors) -> int:
    """Return the output width of the readout: the vocabulary size or the width of a vector."""
    return target.count if isinstance(target, Tokens) else target.width


def _summary_width(config: ModelConfig) -> int:
    """Return the width of the vectors in `Memory.summary`; 0 if there is no source.

    These are the final states of a recurrent encoder, or the mean of another encoder's states.
    """
    match config.encoder:
        case RecurrentEncoderConfig(cell=cell, state_width=width):
            return width * (2 if cell == "lstm" else 1)
        case TransformerEncoderConfig(width=width) | PatchEncoderConfig(width=width):
            return width
        case ConvolutionEncoderConfig(width=width) | EncoderExtensionConfig(state_width=width):
            return width
        case NoEncoderConfig():
            return 0
        case _:
            assert_never(config.encoder)


def _cross_attention(
    config: ModelConfig, attention: AttentionConfig, width: int
) -> MultiHeadAttention | None:
    """Build the attention to the source. Return None if the model has no source."""
    if isinstance(config.encoder, NoEncoderConfig):
        return None
    return build_attention(attention, width, config.encoder.state_width)


def _build_copying(
    config: ModelConfig, part: RecurrentDecoderConfig | TransformerDecoderConfig, features: int
) -> Copying | None:
    """Build the copy mechanism. Return None if the decoder does not copy.

    features: width of the input vectors of the output layer
    """
    if not part.copying or isinstance(config.encoder, NoEncoderConfig):
        return None
    return Copying(features, config.encoder.state_width, part.width)


def _tie_embeddings(
    config: ModelConfig, lookup: Lookup, encoder: EncoderModule | None
) -> nn.Parameter | None:
    """Share embedding weights according to `model.tie`.

    With "all", make the encoder use the decoder's embedding weight. Return the embedding weight
    that the output layer shares, or None if the output layer has its own weight.

    lookup: the decoder's embedding
    """
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
