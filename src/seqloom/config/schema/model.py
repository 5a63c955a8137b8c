"""[model]: an encoder, a decoder, and checks that they fit together."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from seqloom.config.extensions.section import ExtensionConfig, list_extensions
from seqloom.config.extensions.unions import ByKind
from seqloom.config.schema.attention import AttentionConfig, NoAttentionConfig, heads_problems
from seqloom.config.schema.image import ConvolutionEncoderConfig, PatchEncoderConfig
from seqloom.config.schema.recurrent import RecurrentDecoderConfig, RecurrentEncoderConfig
from seqloom.config.schema.section import Section
from seqloom.config.schema.transformer import TransformerDecoderConfig, TransformerEncoderConfig
from seqloom.extensions.registry import Point


class LabelsDecoderConfig(Section):
    """Predicts one label for the whole source, or one label for each source position."""

    kind: Literal["labels"] = "labels"
    pooling: Literal["none", "last", "mean"] = "none"
    """How encoder states are combined. "none": they are not combined, and each source position has
    a label (sequence labelling). "last" and "mean": the whole source has one label, which is
    predicted from the last state or from the mean of all states (classification). Default:
    "none"."""
    previous: bool = False
    """Let the decoder also read the previous label. Then decoding searches for the best sequence of
    labels. Default: false."""
    embedding: int = Field(32, gt=0)
    """Width of the embedding of the previous label. Default: 32."""
    hidden: int | None = Field(None, gt=0)
    """Width of a tanh layer before the output layer. Default: no such layer."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on the encoder's states. Default: 0.0."""

    @property
    def labels_each_position(self) -> bool:
        """True if there is one label for each source position."""
        return self.pooling == "none"


class EncoderExtensionConfig(ExtensionConfig):
    """An encoder outside seqloom: a subclass of `seqloom.models.EncoderModule`. Its setting `width`
    is the width of its states."""

    extension_point: ClassVar[Point] = "encoder"
    required_settings: ClassVar[tuple[str, ...]] = ("width",)

    @property
    def state_width(self) -> int:
        """Width of an encoder state, the encoder's output vector at one position."""
        return int(self.part_settings["width"])


class DecoderExtensionConfig(ExtensionConfig):
    """A decoder outside seqloom: a subclass of `seqloom.models.DecoderModule`."""

    extension_point: ClassVar[Point] = "decoder"


class NoEncoderConfig(Section):
    """No encoder: the model is a language model."""

    kind: Literal["none"] = "none"


SourceEncoderConfig = (
    RecurrentEncoderConfig
    | TransformerEncoderConfig
    | ConvolutionEncoderConfig
    | PatchEncoderConfig
    | EncoderExtensionConfig
)
"""Encoders that read a source."""
ImageEncoderConfig = ConvolutionEncoderConfig | PatchEncoderConfig
EncoderConfig = Annotated[SourceEncoderConfig | NoEncoderConfig, ByKind()]
DecoderConfig = Annotated[
    RecurrentDecoderConfig
    | TransformerDecoderConfig
    | LabelsDecoderConfig
    | DecoderExtensionConfig,
    ByKind(),
]


class ModelConfig(Section):
    """A model: an encoder and a decoder, or a decoder only."""

    encoder: EncoderConfig
    """Encoder of the source."""
    decoder: DecoderConfig
    """Decoder of the target."""
    tie: Literal["none", "output", "all"] = "none"
    """Which matrices are shared: "output" shares the decoder's embedding with the output layer,
    "all" shares the encoder's embedding as well (requires text.shared = true). Saves parameters,
    and helps with little data. Default: "none"."""

    @property
    def supports_packing(self) -> bool:
        """True if the model supports packing, which puts several pairs into one row of a batch.

        Only Transformers over tokens support it. A recurrent network would carry its state from one
        pair into the next. A labels decoder expects one source per row. Extensions are not assumed
        to support packing.
        """
        unpackable = (
            RecurrentEncoderConfig
            | RecurrentDecoderConfig
            | LabelsDecoderConfig
            | ImageEncoderConfig
            | EncoderExtensionConfig
            | DecoderExtensionConfig
        )
        return not any(isinstance(part, unpackable) for part in (self.encoder, self.decoder))

    @property
    def has_extensions(self) -> bool:
        """True if a part of the model is defined outside seqloom."""
        return bool(list_extensions(self))

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems: list[str] = []
        encoder, decoder = self.encoder, self.decoder
        if isinstance(encoder, NoEncoderConfig):
            problems += _decoder_only_problems(decoder)
        else:
            problems += _encoder_decoder_problems(encoder, decoder)
        if self.tie != "none":
            problems += _tie_problems(self)
        if problems:
            raise ValueError("\n".join(problems))
        return self


def _decoder_only_problems(decoder: DecoderConfig) -> list[str]:
    if isinstance(decoder, LabelsDecoderConfig):
        return [
            "decoder: there is no encoder whose states could be labelled; set "
            "encoder.kind = 'recurrent' or another encoder"
        ]
    problems: list[str] = []
    if isinstance(decoder, DecoderExtensionConfig):
        return problems
    if decoder.copying:
        problems.append("decoder.copying: there is no encoder to copy from; set it to false")
    if not isinstance(decoder, RecurrentDecoderConfig):
        return problems
    if not isinstance(decoder.attention, NoAttentionConfig):
        problems.append(
            "decoder.attention: there is no encoder to attend to; set attention.kind = 'none'"
        )
    if not decoder.feed_output:
        problems.append(
            "decoder.feed_output: without an encoder and without the previous token, the decoder has "
            "no input; set feed_output = true"
        )
    if decoder.initial_state != "zeros":
        problems.append(
            "decoder.initial_state: there is no encoder to take the initial state from; set it to 'zeros'"
        )
    if decoder.summary:
        problems.append("decoder.summary: there is no encoder to summarise; remove it")
    return problems


def _encoder_decoder_problems(encoder: SourceEncoderConfig, decoder: DecoderConfig) -> list[str]:
    if isinstance(decoder, LabelsDecoderConfig):
        return _labels_decoder_problems(encoder, decoder)
    problems: list[str] = []
    if isinstance(decoder, DecoderExtensionConfig):
        return problems
    attention = decoder.attention
    if isinstance(attention, AttentionConfig):
        if attention.compares_states_directly and encoder.state_width != decoder.width:
            problems.append(
                f"decoder.attention compares encoder states of width {encoder.state_width} with "
                f"decoder states of width {decoder.width} directly; make the widths equal, set "
                "attention.projection = 'linear', or use score 'bilinear' or 'additive'"
            )
        for width in attention.head_widths(decoder.width, encoder.state_width):
            problems += [
                f"decoder.attention: {problem}"
                for problem in heads_problems(width, attention.heads)
            ]
        if (
            isinstance(decoder, TransformerDecoderConfig)
            and attention.values == "states"
            and not attention.output_projection
            and encoder.state_width != decoder.width
        ):
            problems.append(
                f"decoder.attention returns encoder states of width {encoder.state_width}, which "
                f"cannot be added to a residual stream of width {decoder.width}; set "
                "attention.output_projection = true"
            )
    elif decoder.copying:
        problems.append(
            "decoder.copying: copies the source positions that attention selects, but "
            "attention.kind is 'none'; switch attention on, or set copying = false"
        )
    if isinstance(decoder, RecurrentDecoderConfig):
        problems += _initial_state_problems(encoder, decoder)
    return problems


def _labels_decoder_problems(
    encoder: SourceEncoderConfig, decoder: LabelsDecoderConfig
) -> list[str]:
    if decoder.pooling == "last" and not isinstance(encoder, RecurrentEncoderConfig):
        return [
            "decoder.pooling 'last' needs a recurrent encoder: a Transformer has no last state; use "
            "'mean'"
        ]
    return []


def _initial_state_problems(
    encoder: SourceEncoderConfig, decoder: RecurrentDecoderConfig
) -> list[str]:
    problems = []
    if decoder.initial_state == "copy":
        if not isinstance(encoder, RecurrentEncoderConfig):
            problems.append(
                "decoder.initial_state 'copy' needs a recurrent encoder: other encoders have no last "
                "state; use 'mlp'"
            )
        elif (encoder.cell, encoder.layers, encoder.state_width) != (
            decoder.cell,
            decoder.layers,
            decoder.width,
        ):
            problems.append(
                f"decoder.initial_state 'copy' needs equal shapes, but the encoder ends in "
                f"{encoder.layers} x {encoder.state_width} ({encoder.cell}) and the decoder "
                f"starts from {decoder.layers} x {decoder.width} ({decoder.cell}); "
                "make them equal or use 'mlp'"
            )
    if decoder.initial_state == "flattened" and not isinstance(encoder, ImageEncoderConfig):
        problems.append(
            "decoder.initial_state 'flattened' needs an image encoder, which has the same number of "
            "cells for every image; texts have different lengths, so use 'mlp'"
        )
    if (
        isinstance(decoder.attention, NoAttentionConfig)
        and decoder.initial_state == "zeros"
        and not decoder.summary
    ):
        problems.append(
            "decoder: it gets no information about the source, because initial_state, summary and "
            "attention are all off; switch one of them on"
        )
    return problems


def _tie_problems(model: ModelConfig) -> list[str]:
    problems = []
    decoder, encoder = model.decoder, model.encoder
    if isinstance(decoder, LabelsDecoderConfig):
        return ["tie: labels have no embedding to share; use tie = 'none'"]
    if isinstance(decoder, DecoderExtensionConfig):
        return [f"tie: the decoder '{decoder.kind}' is outside seqloom; use tie = 'none'"]
    if not decoder.embedding.is_learned:
        problems.append("tie: the decoder has no embedding to share; use embedding 'learned'")
    elif isinstance(decoder, RecurrentDecoderConfig) and not decoder.feed_output:
        problems.append(
            "tie: the decoder has no embedding to share, because decoder.feed_output is false; set "
            "feed_output = true or tie = 'none'"
        )
    elif isinstance(decoder, RecurrentDecoderConfig) and not decoder.readout_matches_embedding:
        problems.append(
            "tie: an output layer shared with the embedding needs inputs as wide as the "
            "embedding; set decoder.readout = 'tanh'"
        )
    elif (
        isinstance(decoder, TransformerDecoderConfig)
        and decoder.embedding.vector_width(decoder.width) != decoder.width
    ):
        problems.append("tie: decoder.embedding.width must equal decoder.width")
    if model.tie == "all":
        if isinstance(encoder, NoEncoderConfig):
            problems.append("tie: there is no encoder; use tie = 'output'")
        elif isinstance(encoder, ImageEncoderConfig):
            problems.append("tie: images have no embedding to share; use tie = 'output'")
        elif isinstance(encoder, EncoderExtensionConfig):
            problems.append(
                f"tie: the encoder '{encoder.kind}' is outside seqloom; use tie = 'output'"
            )
        elif not encoder.embedding.is_learned:
            problems.append("tie: the encoder has no embedding to share; use embedding 'learned'")
        elif decoder.embedding.is_learned:
            source_width = encoder.embedding.vector_width(encoder.width)
            target_width = decoder.embedding.vector_width(decoder.width)
            if source_width != target_width:
                problems.append(
                    f"tie: embeddings of width {source_width} (encoder) and {target_width} "
                    "(decoder) cannot be one matrix; set both embedding widths to the same value"
                )
    return problems
