"""Recurrent encoders and decoders, and their switches."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from seqloom.config.attention import AttentionConfig, NoAttentionConfig, heads_problems
from seqloom.config.inputs import (
    EmbeddingConfig,
    InputPositionsConfig,
    LearnedEmbeddingConfig,
    NoPositionsConfig,
    position_problems,
)
from seqloom.config.section import Section

Cell = Literal["rnn", "gru", "lstm"]


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
        problems = position_problems(self.embedding, self.positions, self.width)
        if problems:
            raise ValueError("\n".join(problems))
        return self


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
    copying: bool = False
    """May take tokens from the source as they are: names and numbers (needs text.shared)."""
    embedding: EmbeddingConfig = LearnedEmbeddingConfig()
    positions: InputPositionsConfig = NoPositionsConfig()
    dropout: float = Field(0.0, ge=0, lt=1)
    """On the embedded input, between layers and before the readout."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        problems = position_problems(self.embedding, self.positions, self.width)
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
            if attention.projection != "none" or attention.values == "learned":
                problems += heads_problems(attention.width or self.width, attention.heads)
        if problems:
            raise ValueError("\n".join(problems))
        return self
