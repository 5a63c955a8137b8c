"""[model]: an encoder, a decoder, and whether the two fit together."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from seqloom.config.attention import AttentionConfig, NoAttentionConfig, heads_problems
from seqloom.config.image import ConvolutionEncoderConfig, PatchEncoderConfig
from seqloom.config.inputs import LearnedEmbeddingConfig, OneHotEmbeddingConfig
from seqloom.config.labels import LabelsDecoderConfig
from seqloom.config.recurrent import RecurrentDecoderConfig, RecurrentEncoderConfig
from seqloom.config.section import Section
from seqloom.config.transformer import TransformerDecoderConfig, TransformerEncoderConfig


class NoEncoderConfig(Section):
    """A decoder alone: a language model."""

    kind: Literal["none"] = "none"


ReadingConfig = (
    RecurrentEncoderConfig
    | TransformerEncoderConfig
    | ConvolutionEncoderConfig
    | PatchEncoderConfig
)
"""Every encoder that there is something to read for."""
ImageEncoderConfig = ConvolutionEncoderConfig | PatchEncoderConfig
EncoderConfig = Annotated[ReadingConfig | NoEncoderConfig, Field(discriminator="kind")]
DecoderConfig = Annotated[
    RecurrentDecoderConfig | TransformerDecoderConfig | LabelsDecoderConfig,
    Field(discriminator="kind"),
]


class ModelConfig(Section):
    encoder: EncoderConfig
    decoder: DecoderConfig
    tie: Literal["none", "output", "all"] = "none"
    """Which embeddings are one matrix: none; the decoder's with the output layer; or the
    encoder's as well (needs text.shared)."""

    @property
    def takes_packed(self) -> bool:
        """Can a row of a batch hold several pairs? A chain of states would run from one into
        the next, and labels need one end of the source."""
        unpackable = (
            RecurrentEncoderConfig
            | RecurrentDecoderConfig
            | LabelsDecoderConfig
            | ImageEncoderConfig
        )
        return not any(isinstance(part, unpackable) for part in (self.encoder, self.decoder))

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        problems: list[str] = []
        encoder, decoder = self.encoder, self.decoder
        if isinstance(encoder, NoEncoderConfig):
            problems += _alone_problems(decoder)
        else:
            problems += _pair_problems(encoder, decoder)
        if self.tie != "none":
            problems += _tie_problems(self)
        if problems:
            raise ValueError("\n".join(problems))
        return self


def _alone_problems(decoder: DecoderConfig) -> list[str]:
    if isinstance(decoder, LabelsDecoderConfig):
        return [
            "decoder: there is no encoder whose states could be labelled; choose one, such as "
            "encoder.kind = 'recurrent'"
        ]
    problems = []
    if decoder.copying:
        problems.append("decoder.copying: there is no encoder to copy from; set it to false")
    if not isinstance(decoder, RecurrentDecoderConfig):
        return problems
    if not isinstance(decoder.attention, NoAttentionConfig):
        problems.append(
            "decoder.attention: there is no encoder to attend to; set attention.kind = 'none'"
        )
    if decoder.handover != "none":
        problems.append("decoder.handover: there is no encoder to hand over; set it to 'none'")
    if decoder.summary:
        problems.append("decoder.summary: there is no encoder to sum up; remove it")
    return problems


def _pair_problems(encoder: ReadingConfig, decoder: DecoderConfig) -> list[str]:
    if isinstance(decoder, LabelsDecoderConfig):
        return _label_problems(encoder, decoder)
    problems = []
    attention = decoder.attention
    if isinstance(attention, AttentionConfig):
        if attention.compares_states_directly and encoder.state_width != decoder.width:
            problems.append(
                f"decoder.attention compares encoder states of width {encoder.state_width} with "
                f"decoder states of width {decoder.width} directly; make the widths equal, set "
                "attention.projection = 'linear', or use score 'bilinear' or 'additive'"
            )
        for width in attention.split_widths(decoder.width, encoder.state_width):
            problems += [
                f"decoder.attention: {problem}"
                for problem in heads_problems(width, attention.heads)
            ]
        if (
            isinstance(decoder, TransformerDecoderConfig)
            and attention.values == "states"
            and not attention.merge
            and encoder.state_width != decoder.width
        ):
            problems.append(
                f"decoder.attention reads encoder states of width {encoder.state_width} that "
                f"cannot be added to a stream of width {decoder.width}; set attention.merge = true"
            )
    elif decoder.copying:
        problems.append(
            "decoder.copying: it points at places of the source, but with attention.kind = 'none' "
            "nobody looks at them; switch attention on, or copying off"
        )
    if isinstance(decoder, RecurrentDecoderConfig):
        problems += _handover_problems(encoder, decoder)
    return problems


def _label_problems(encoder: ReadingConfig, decoder: LabelsDecoderConfig) -> list[str]:
    if decoder.reads == "last" and not isinstance(encoder, RecurrentEncoderConfig):
        return [
            "decoder.reads 'last' needs a recurrent encoder: a Transformer has no last state; use "
            "'mean'"
        ]
    return []


def _handover_problems(encoder: ReadingConfig, decoder: RecurrentDecoderConfig) -> list[str]:
    problems = []
    if decoder.handover == "whole":
        if not isinstance(encoder, RecurrentEncoderConfig):
            problems.append(
                "decoder.handover 'whole' needs a recurrent encoder: others have no last state; "
                "use 'mlp'"
            )
        elif (encoder.cell, encoder.layers, encoder.state_width) != (
            decoder.cell,
            decoder.layers,
            decoder.width,
        ):
            problems.append(
                f"decoder.handover 'whole' needs equal shapes, but the encoder ends in "
                f"{encoder.layers} x {encoder.state_width} ({encoder.cell}) and the decoder "
                f"starts from {decoder.layers} x {decoder.width} ({decoder.cell}); "
                "make them equal or use 'mlp'"
            )
    if (
        isinstance(decoder.attention, NoAttentionConfig)
        and decoder.handover == "none"
        and not decoder.summary
    ):
        problems.append(
            "decoder: nothing of the source reaches it (no handover, no summary, no attention); "
            "switch one of them on"
        )
    return problems


def _tie_problems(model: ModelConfig) -> list[str]:
    problems = []
    decoder, encoder = model.decoder, model.encoder
    if isinstance(decoder, LabelsDecoderConfig):
        return ["tie: labels have no embedding to share; use tie = 'none'"]
    if isinstance(decoder.embedding, OneHotEmbeddingConfig):
        problems.append("tie: the decoder has no embedding to share; use embedding 'learned'")
    elif isinstance(decoder, RecurrentDecoderConfig) and not decoder.reads_out_as_embedded:
        problems.append(
            "tie: an output layer shared with the embedding needs features as wide as the "
            "embedding; set decoder.readout = 'tanh'"
        )
    elif (
        isinstance(decoder, TransformerDecoderConfig)
        and (decoder.embedding.width or decoder.width) != decoder.width
    ):
        problems.append("tie: decoder.embedding.width must equal decoder.width")
    if model.tie == "all":
        if isinstance(encoder, NoEncoderConfig):
            problems.append("tie: there is no encoder; use tie = 'output'")
        elif isinstance(encoder, ImageEncoderConfig):
            problems.append("tie: images have no embedding to share; use tie = 'output'")
        elif isinstance(encoder.embedding, OneHotEmbeddingConfig):
            problems.append("tie: the encoder has no embedding to share; use embedding 'learned'")
        elif isinstance(decoder.embedding, LearnedEmbeddingConfig):
            theirs = encoder.embedding.width or encoder.width
            ours = decoder.embedding.width or decoder.width
            if theirs != ours:
                problems.append(
                    f"tie: embeddings of width {theirs} (encoder) and {ours} (decoder) cannot be "
                    "one matrix; set both embedding widths alike"
                )
    return problems
