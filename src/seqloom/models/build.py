"""Builds a model from its config and a `Signature`, which describes its inputs and outputs."""

from typing import assert_never

from torch import nn

from seqloom.config.extensions.section import ExtensionConfig
from seqloom.config.schema.attention import AttentionConfig
from seqloom.config.schema.encoder_decoder import (
    ConvolutionEncoderConfig,
    ImageEncoderConfig,
    LabelsDecoderConfig,
)
from seqloom.config.schema.model import ModelConfig
from seqloom.config.schema.recurrent import RecurrentDecoderConfig, RecurrentEncoderConfig
from seqloom.config.schema.transformer import (
    LayerStackConfig,
    PatchEncoderConfig,
    TransformerDecoderConfig,
    TransformerEncoderConfig,
    TransformerLayersConfig,
)
from seqloom.core.errors import ConfigError
from seqloom.core.signature import Pixels, Signature, Tokens, Vectors
from seqloom.models.check_extension import check_extension_decoder, check_extension_encoder
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
    problems = _vocabulary_problems(config, signature)
    if problems:
        raise ConfigError("\n".join(problems))
    encoder = build_encoder(config, signature)
    decoder = build_decoder(config, signature, encoder)
    if problems := _grid_problems(encoder, decoder):
        raise ConfigError("\n".join(problems))
    return Model(encoder, decoder)


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
        if isinstance(ids, Tokens)
        for problem in part.vocabulary_problems(ids.count)
    ]


def _grid_problems(encoder: EncoderModule | None, decoder: DecoderModule) -> list[str]:
    """Return an error message if the attention score supports too few source positions.

    Some attention scores have a maximum source length. It must be at least the number of grid cells
    of an image.
    """
    if encoder is None or encoder.grid_cells is None:
        return []
    return [
        f"model.decoder.{setting}: an image has {encoder.grid_cells} cells, but "
        f"{setting.split('.')[-1]} is {limit}; set it to {encoder.grid_cells}"
        for setting, limit in decoder.source_limits.items()
        if encoder.grid_cells > limit
    ]


def build_encoder(config: ModelConfig, signature: Signature) -> EncoderModule | None:
    """Build the encoder. Return None if the model has no source.

    The settings of the encoder name the function that builds it (`PartConfig.builds`).
    """
    if not config.has_encoder:
        return None
    part = config.encoder
    encoder = part.build_part(
        config=part, model=config, signature=signature, source=signature.source
    )
    if isinstance(part, ExtensionConfig):
        check_extension_encoder(encoder, part.kind, part.state_width, signature)
    return encoder


def build_decoder(
    config: ModelConfig, signature: Signature, encoder: EncoderModule | None
) -> DecoderModule:
    """Build the decoder.

    The settings of the decoder name the function that builds it (`PartConfig.builds`). With
    `model.tie = "all"`, also make the encoder use the decoder's embedding weight.
    """
    part = config.decoder
    decoder = part.build_part(
        config=part,
        model=config,
        signature=signature,
        encoder=encoder,
        target=signature.target,
        encoder_width=config.encoder.state_width,
    )
    if isinstance(part, ExtensionConfig):
        check_extension_decoder(decoder, part.kind, signature, encoder)
    return decoder


# Recurrent networks


def build_recurrent_encoder(
    config: RecurrentEncoderConfig, model: ModelConfig, signature: Signature
) -> RecurrentEncoder:
    """Build a recurrent encoder."""
    assert isinstance(signature.source, Tokens | Vectors)
    scaled = model.tie == "all"
    lookup = build_lookup(config.embedding, signature.source, config.width, scaled)
    embedder = _recurrent_embedder(config, lookup)
    widths = [embedder.width] + [config.state_width] * (config.layers - 1)
    forward = _recurrent_layers(config, widths) if config.direction != "backward" else []
    backward = _recurrent_layers(config, widths) if config.direction != "forward" else []
    dropout = build_dropout(config.dropout, config.locked_dropout)
    attention = None
    if isinstance(config.self_attention, AttentionConfig):
        attention = build_attention(config.self_attention, config.state_width, config.state_width)
    residual = config.self_attention_residual
    return RecurrentEncoder(embedder, forward, backward, dropout, attention, residual)


def build_recurrent_decoder(
    config: RecurrentDecoderConfig,
    model: ModelConfig,
    signature: Signature,
    encoder: EncoderModule | None,
) -> RecurrentDecoder:
    """Build a recurrent decoder."""
    scaled = model.tie != "none"
    lookup = _recurrent_decoder_lookup(config, signature, scaled)
    tied = _tie_embeddings(model, lookup, encoder)
    embedder = _recurrent_embedder(config, lookup)
    attention = _cross_attention(model, config.cross_attention, config.width)
    context = 0 if attention is None else attention.context_width
    summary = model.encoder.summary_width
    widths = []
    for level in range(config.layers):
        width = embedder.width if level == 0 else config.width
        width += context if level == 0 and "input" in config.context else 0
        width += summary if level == 0 and "input" in config.summary else 0
        width += context if level == 1 and "layer" in config.context else 0
        widths.append(width)
    layers = _recurrent_layers(config, widths)
    features = config.width
    features += context if "readout" in config.context else 0
    features += summary if "readout" in config.summary else 0
    features += embedder.width if config.readout_input else 0
    return RecurrentDecoder(
        embedder=embedder,
        layers=layers,
        initial_state=_build_initial_state(config, model, encoder, layers[0].state_width),
        attention=attention,
        query_is_previous_state=config.query == "previous",
        context_uses=frozenset(config.context),
        summary_uses=frozenset(config.summary),
        readout=Readout(
            features,
            _output_count(signature.target),
            lookup.width if config.readout == "tanh" else None,
            tied,
        ),
        readout_uses_input=config.readout_input,
        copying=_build_copying(model, config.copying, features, config.width),
        dropout=build_dropout(config.dropout, config.locked_dropout),
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
    config: RecurrentDecoderConfig,
    model: ModelConfig,
    encoder: EncoderModule | None,
    state_width: int,
) -> InitialState:
    hidden_layers = config.initial_state_layers - 1
    match config.initial_state:
        case "zeros":
            return InitialState(config.layers, state_width)
        case "copy":
            return CopiedInitialState(config.layers, state_width)
        case "mlp":
            width = model.encoder.summary_width * model.encoder.summary_layers
            return ProjectedInitialState(width, config.layers, state_width, hidden_layers)
        case "flattened":
            assert encoder is not None
            assert encoder.grid_cells is not None
            return FlattenedInitialState(
                encoder.grid_cells,
                model.encoder.state_width,
                config.layers,
                state_width,
                hidden_layers,
            )
        case _:
            assert_never(config.initial_state)


# Transformers


def build_transformer_encoder(
    config: TransformerEncoderConfig, signature: Signature
) -> TransformerEncoder:
    """Build a Transformer encoder."""
    assert isinstance(signature.source, Tokens | Vectors)
    embedder = _transformer_embedder(config, signature.source)
    layers = _encoder_layers(config, config.positions.rotates, config.remove_residual)
    return TransformerEncoder(embedder, layers, config.norm)


def build_transformer_decoder(
    config: TransformerDecoderConfig,
    model: ModelConfig,
    signature: Signature,
    encoder: EncoderModule | None,
) -> TransformerDecoder:
    """Build a Transformer decoder."""
    embedder = _transformer_embedder(config, _input_spec(signature), _replaced_start(config))
    tied = _tie_embeddings(model, embedder.lookup, encoder)
    # PAD and START are the first two ids.
    excluded = 0 if config.special_outputs else START + 1
    readout = Readout(config.width, _output_count(signature.target), None, tied, excluded)
    rotary = config.positions.rotates
    layers = [
        DecoderLayer(
            build_attention(config.attention, config.width, config.width, rotary),
            _cross_attention(model, config.attention, config.width),
            build_feedforward(config),
            config.norm,
            config.dropout,
        )
        for _ in range(config.layers)
    ]
    copying = _build_copying(model, config.copying, config.width, config.width)
    return TransformerDecoder(embedder, layers, config.norm, readout, copying)


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


# Images


def build_convolution_encoder(
    config: ConvolutionEncoderConfig, signature: Signature
) -> ConvolutionEncoder:
    """Build a convolutional encoder of images."""
    network = ResidualNetwork(list(config.channels), config.blocks)
    return ConvolutionEncoder(_crop(config, signature), network, config.width, config.dropout)


def build_patch_encoder(config: PatchEncoderConfig, signature: Signature) -> PatchEncoder:
    """Build a Transformer encoder of image patches."""
    crop = _crop(config, signature)
    return PatchEncoder(
        crop,
        Patches(crop.size, config.patch_size, config.width),
        _encoder_layers(config, rotary=False),
        build_final_norm(config.norm, config.width),
        config.dropout,
    )


def _crop(config: ImageEncoderConfig, signature: Signature) -> Crop:
    assert isinstance(signature.source, Pixels)
    return Crop(signature.source.width, config.crop_scale, config.color_jitter, config.mirror)


# Labels


def build_label_decoder(
    config: LabelsDecoderConfig, model: ModelConfig, signature: Signature
) -> LabelDecoder:
    """Build a decoder of labels."""
    labels = _output_count(signature.target)
    selectors = {"none": select_positions, "last": select_last, "mean": select_mean}
    encoder = model.encoder
    width = encoder.summary_width if config.pooling == "last" else encoder.state_width
    previous = None
    if config.previous:
        previous = LearnedLookup(labels, config.embedding, noise=0.0, scaled=False)
        width += previous.width
    readout = LabelReadout(width, labels, config.hidden, END, impossible=(PAD, START))
    return LabelDecoder(selectors[config.pooling], previous, readout, config.dropout)


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


def _cross_attention(
    model: ModelConfig, attention: AttentionConfig | None, width: int
) -> MultiHeadAttention | None:
    """Build the attention to the source. Return None if the model has no source or no attention."""
    if attention is None or not model.has_encoder:
        return None
    return build_attention(attention, width, model.encoder.state_width)


def _build_copying(model: ModelConfig, copies: bool, features: int, width: int) -> Copying | None:
    """Build the copy mechanism. Return None if the decoder does not copy.

    features: width of the input vectors of the output layer
    width:    width of the decoder
    """
    if not copies or not model.has_encoder:
        return None
    return Copying(features, model.encoder.state_width, width)


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
