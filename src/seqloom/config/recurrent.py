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
    locked_dropout: bool = False
    """Drop the same numbers at every position of a sequence (Gal and Ghahramani 2016)."""
    weight_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the weights from state to state that a batch goes without (Merity et al. 2018)."""

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
    locked_dropout: bool = False
    """Drop the same numbers at every position of a sequence (Gal and Ghahramani 2016)."""
    weight_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the weights from state to state that a batch goes without (Merity et al. 2018)."""

    @property
    def reads_out_as_embedded(self) -> bool:
        """Is what the output layer reads as wide as an embedding, so that the two can be one?"""
        if self.readout == "tanh":
            return True
        own = self.embedding.width if isinstance(self.embedding, LearnedEmbeddingConfig) else None
        attends = isinstance(self.attention, AttentionConfig) and "readout" in self.context
        more = attends or "readout" in self.summary or self.readout_input
        return (own or self.width) == self.width and not more

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
            if {"input", "state"} & set(self.context) and (
                self.locked_dropout or self.weight_dropout
            ):
                problems.append(
                    "context 'input' and 'state' are taught one position at a time, where "
                    "locked_dropout and weight_dropout would be drawn anew each time; use context "
                    "'readout' or 'layer', or leave both out"
                )
            if attention.projection != "none" or attention.values == "learned":
                problems += heads_problems(attention.width or self.width, attention.heads)
        if problems:
            raise ValueError("\n".join(problems))
        return self
