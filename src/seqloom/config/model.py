"""[model]: an encoder, a decoder, and every choice of the lectures as a switch."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from seqloom.config.attention import (
    TRANSFORMER_ATTENTION,
    AttentionConfig,
    NoAttentionConfig,
)
from seqloom.config.section import Section


class LearnedEmbeddingConfig(Section):
    kind: Literal["learned"] = "learned"
    width: int | None = Field(None, gt=0)
    """Left out: the width of the network it feeds."""
    noise: float = Field(0.0, ge=0)
    """Standard deviation of the Gaussian noise added to embeddings in training."""


class OneHotEmbeddingConfig(Section):
    """No embedding: token i is the i-th unit vector."""

    kind: Literal["one-hot"] = "one-hot"


EmbeddingConfig = Annotated[
    LearnedEmbeddingConfig | OneHotEmbeddingConfig, Field(discriminator="kind")
]


class NoPositionsConfig(Section):
    kind: Literal["none"] = "none"


class OneHotPositionsConfig(Section):
    """Position t is the t-th unit vector."""

    kind: Literal["one-hot"] = "one-hot"
    max_length: int = Field(256, gt=0)
    join: Literal["add", "append"] = "append"


class SinusoidalPositionsConfig(Section):
    """Sines and cosines of falling frequency."""

    kind: Literal["sinusoidal"] = "sinusoidal"
    join: Literal["add", "append"] = "add"
    width: int = Field(64, gt=0)
    """Width of the appended part; an added part is as wide as what it is added to."""


class LearnedPositionsConfig(Section):
    kind: Literal["learned"] = "learned"
    max_length: int = Field(256, gt=0)
    join: Literal["add", "append"] = "add"
    width: int = Field(64, gt=0)
    """Width of the appended part; an added part is as wide as what it is added to."""


class RotaryPositionsConfig(Section):
    """Queries and keys of self-attention are turned by an angle that grows with the position."""

    kind: Literal["rotary"] = "rotary"


InputPositionsConfig = Annotated[
    NoPositionsConfig | OneHotPositionsConfig | SinusoidalPositionsConfig | LearnedPositionsConfig,
    Field(discriminator="kind"),
]
PositionsConfig = Annotated[
    NoPositionsConfig
    | OneHotPositionsConfig
    | SinusoidalPositionsConfig
    | LearnedPositionsConfig
    | RotaryPositionsConfig,
    Field(discriminator="kind"),
]
Cell = Literal["rnn", "gru", "lstm"]


def _input_width(embedding: EmbeddingConfig, width: int) -> int | None:
    """How wide the embedded tokens are; None while only the vocabulary knows."""
    if isinstance(embedding, OneHotEmbeddingConfig):
        return None
    return embedding.width or width


def _position_problems(
    embedding: EmbeddingConfig, positions: PositionsConfig, width: int
) -> list[str]:
    if isinstance(positions, OneHotPositionsConfig) and positions.join == "add":
        room = _input_width(embedding, width)
        if room is not None and positions.max_length > room:
            return [
                f"positions: one-hot positions up to {positions.max_length} cannot be added to "
                f"embeddings of width {room}; use join = 'append', or max_length = {room} or less"
            ]
    return []


class RecurrentEncoderConfig(Section):
    kind: Literal["recurrent"] = "recurrent"
    cell: Cell = "gru"
    width: int = Field(256, gt=0)
    """Of each direction: read in both directions, a state is twice as wide."""
    layers: int = Field(1, ge=1)
    direction: Literal["forward", "backward", "both"] = "both"
    """backward reads the source in reverse; both puts the two states of a position side by side."""
    embedding: EmbeddingConfig = LearnedEmbeddingConfig()
    positions: InputPositionsConfig = NoPositionsConfig()
    dropout: float = Field(0.0, ge=0, lt=1)
    """On the embedded input and between layers."""

    @property
    def state_width(self) -> int:
        return self.width * (2 if self.direction == "both" else 1)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        problems = _position_problems(self.embedding, self.positions, self.width)
        if problems:
            raise ValueError("\n".join(problems))
        return self


class TransformerLayersConfig(Section):
    """What a Transformer's encoder and decoder have in common."""

    width: int = Field(256, gt=0)
    layers: int = Field(3, ge=1)
    feedforward: int = Field(1024, gt=0)
    activation: Literal["relu", "gelu"] = "relu"
    norm: Literal["pre", "post"] = "pre"
    """Layer norm before each sublayer, or after its residual sum as in the paper."""
    attention: AttentionConfig = TRANSFORMER_ATTENTION
    embedding: EmbeddingConfig = LearnedEmbeddingConfig()
    positions: PositionsConfig = SinusoidalPositionsConfig()
    dropout: float = Field(0.1, ge=0, lt=1)
    """On the embedded input and on each sublayer's output."""
    feedforward_dropout: float = Field(0.0, ge=0, lt=1)
    """Inside the feed-forward network. Slow on CPUs."""

    @property
    def state_width(self) -> int:
        return self.width

    @model_validator(mode="after")
    def _possible(self) -> Self:
        problems = _position_problems(self.embedding, self.positions, self.width)
        attention = self.attention
        inner = attention.width or self.width
        if inner % attention.heads:
            near = max(inner // attention.heads, 1) * attention.heads
            problems.append(
                f"width {inner} cannot be split into {attention.heads} heads; "
                f"make width a multiple of {attention.heads}, for example {near}"
            )
        elif isinstance(self.positions, RotaryPositionsConfig) and (inner // attention.heads) % 2:
            problems.append(
                f"rotary positions turn pairs of numbers, but a head is {inner // attention.heads} "
                "wide; make width divided by heads even"
            )
        read = self.width if attention.values == "states" else inner
        if read != self.width and not attention.merge:
            problems.append(
                f"attention reads vectors of width {read} that cannot be added to a stream of "
                f"width {self.width}; set attention.merge = true, or leave attention.width out"
            )
        if problems:
            raise ValueError("\n".join(problems))
        return self


class TransformerEncoderConfig(TransformerLayersConfig):
    kind: Literal["transformer"] = "transformer"


class NoEncoderConfig(Section):
    """A decoder alone: a language model."""

    kind: Literal["none"] = "none"


class RecurrentDecoderConfig(Section):
    kind: Literal["recurrent"] = "recurrent"
    cell: Cell = "gru"
    width: int = Field(256, gt=0)
    layers: int = Field(1, ge=1)
    handover: Literal["whole", "mlp", "none"] = "mlp"
    """The first state: the encoder's last states as they are, through a layer, or zeros."""
    summary: tuple[Literal["input", "readout"], ...] = ()
    """Where the encoder's last state is given again at every step."""
    attention: Annotated[AttentionConfig | NoAttentionConfig, Field(discriminator="kind")] = (
        AttentionConfig()
    )
    query: Literal["current", "previous"] = "current"
    """Ask with the state after this step's input, or with the one before it (Bahdanau)."""
    context: tuple[Literal["input", "readout", "layer", "state"], ...] = ("readout",)
    """Where the context vector goes: into the cell's input, the readout, the next recurrent
    layer's input, or in place of the state."""
    readout: Literal["linear", "tanh"] = "linear"
    """Straight to the vocabulary, or through a tanh layer as wide as the embedding first."""
    readout_input: bool = False
    """The readout also sees the embedded previous token: y_t = g(y_{t-1}, s_t, c)."""
    embedding: EmbeddingConfig = LearnedEmbeddingConfig()
    positions: InputPositionsConfig = NoPositionsConfig()
    dropout: float = Field(0.0, ge=0, lt=1)
    """On the embedded input, between layers and before the readout."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        problems = _position_problems(self.embedding, self.positions, self.width)
        attention = self.attention
        if isinstance(attention, AttentionConfig):
            if not self.context:
                problems.append(
                    "context is empty, so attention would be computed and thrown away; "
                    "name a use such as 'readout', or set attention.kind = 'none'"
                )
            if "layer" in self.context and self.layers < 2:
                problems.append(
                    "context 'layer' feeds the next recurrent layer, but layers is 1; "
                    "set layers to 2 or more"
                )
            inner = attention.width or self.width
            if inner % attention.heads:
                near = max(inner // attention.heads, 1) * attention.heads
                problems.append(
                    f"width {inner} cannot be split into {attention.heads} heads; "
                    f"make width a multiple of {attention.heads}, for example {near}"
                )
        if problems:
            raise ValueError("\n".join(problems))
        return self


class TransformerDecoderConfig(TransformerLayersConfig):
    kind: Literal["transformer"] = "transformer"


EncoderConfig = Annotated[
    RecurrentEncoderConfig | TransformerEncoderConfig | NoEncoderConfig,
    Field(discriminator="kind"),
]
DecoderConfig = Annotated[
    RecurrentDecoderConfig | TransformerDecoderConfig, Field(discriminator="kind")
]


class ModelConfig(Section):
    encoder: EncoderConfig
    decoder: DecoderConfig
    tie: Literal["none", "output", "all"] = "none"
    """Which embeddings are one matrix: none; the decoder's with the output layer; or the
    encoder's as well (needs text.shared)."""

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
    if not isinstance(decoder, RecurrentDecoderConfig):
        return []
    problems = []
    if not isinstance(decoder.attention, NoAttentionConfig):
        problems.append(
            "decoder.attention: there is no encoder to attend to; set attention.kind = 'none'"
        )
    if decoder.handover != "none":
        problems.append("decoder.handover: there is no encoder to hand over; set it to 'none'")
    if decoder.summary:
        problems.append("decoder.summary: there is no encoder to sum up; remove it")
    return problems


def _pair_problems(
    encoder: RecurrentEncoderConfig | TransformerEncoderConfig, decoder: DecoderConfig
) -> list[str]:
    problems = []
    attention = decoder.attention
    if isinstance(attention, AttentionConfig):
        if attention.compares_states_directly and encoder.state_width != decoder.width:
            problems.append(
                f"decoder.attention compares encoder states of width {encoder.state_width} with "
                f"decoder states of width {decoder.width} directly; make the widths equal, set "
                "attention.projection = 'linear', or use score 'bilinear' or 'additive'"
            )
        for name, width in (("encoder", encoder.state_width), ("decoder", decoder.width)):
            if attention.projection == "none" and width % attention.heads:
                problems.append(
                    f"decoder.attention: {name} states of width {width} cannot be split into "
                    f"{attention.heads} heads; change the width or the number of heads"
                )
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
    if isinstance(decoder, RecurrentDecoderConfig):
        problems += _handover_problems(encoder, decoder)
    return problems


def _handover_problems(
    encoder: RecurrentEncoderConfig | TransformerEncoderConfig, decoder: RecurrentDecoderConfig
) -> list[str]:
    problems = []
    if decoder.handover == "whole":
        if not isinstance(encoder, RecurrentEncoderConfig):
            problems.append(
                "decoder.handover 'whole' needs a recurrent encoder: a Transformer has no last "
                "state; use 'mlp'"
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
    if isinstance(decoder.embedding, OneHotEmbeddingConfig):
        problems.append("tie: the decoder has no embedding to share; use embedding 'learned'")
    elif isinstance(decoder, RecurrentDecoderConfig) and decoder.readout == "linear":
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
