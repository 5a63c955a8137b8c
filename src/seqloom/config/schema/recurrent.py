"""Settings of recurrent encoders and decoders."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from seqloom.config.schema.attention import AttentionConfig, NoAttentionConfig, heads_problems
from seqloom.config.schema.embedding import (
    EmbeddingConfig,
    InputPositionsConfig,
    LearnedEmbeddingConfig,
    NoPositionsConfig,
    position_problems,
)
from seqloom.config.schema.section import Section

Cell = Literal["rnn", "gru", "lstm"]


class RecurrentEncoderConfig(Section):
    """A recurrent encoder."""

    kind: Literal["recurrent"] = "recurrent"
    cell: Cell = "gru"
    """Recurrent cell: "rnn" is a vanilla RNN with tanh. Default: "gru"."""
    width: int = Field(256, gt=0)
    """Number of hidden units per direction. With direction "both" a state is twice as wide.
    Default: 256."""
    layers: int = Field(1, ge=1)
    """Number of stacked layers. Default: 1."""
    direction: Literal["forward", "backward", "both"] = "both"
    """Reading direction: "backward" reads the source in reverse, "both" concatenates the states of
    the two directions at each position. Default: "both"."""
    embedding: EmbeddingConfig = LearnedEmbeddingConfig()
    """Embedding of the source tokens. Default: kind "learned"."""
    positions: InputPositionsConfig = NoPositionsConfig()
    """Position encoding, which is joined to the embeddings. Default: kind "none"."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on the embeddings and between layers. Default: 0.0."""
    locked_dropout: bool = False
    """Use the same dropout mask at every position of a sequence (Gal and Ghahramani 2016).
    Default: false."""
    weight_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the state-to-state weights that training sets to zero, chosen anew for each batch
    (Merity et al. 2018). Default: 0.0."""

    @property
    def state_width(self) -> int:
        """Width of the state of one position."""
        return self.width * (2 if self.direction == "both" else 1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = position_problems(self.embedding, self.positions, self.width)
        if problems:
            raise ValueError("\n".join(problems))
        return self


class RecurrentDecoderConfig(Section):
    """A recurrent decoder, with or without attention."""

    kind: Literal["recurrent"] = "recurrent"
    cell: Cell = "gru"
    """Recurrent cell: "rnn" is a vanilla RNN with tanh. Default: "gru"."""
    width: int = Field(256, gt=0)
    """Number of hidden units. Default: 256."""
    layers: int = Field(1, ge=1)
    """Number of stacked layers. Default: 1."""
    initial_state: Literal["copy", "mlp", "zeros"] = "mlp"
    """Initial state of the decoder: "copy" takes the encoder's last states, "mlp" passes them
    through a learned layer, "zeros" starts from zeros. Default: "mlp"."""
    summary: tuple[Literal["input", "readout"], ...] = ()
    """Where the encoder's last state is appended at every step: "input", to the input of the cell;
    "readout", to the input of the readout; or both. Default: []."""
    attention: Annotated[AttentionConfig | NoAttentionConfig, Field(discriminator="kind")] = (
        AttentionConfig()
    )
    """Attention over the encoder's states. Set attention.kind = "none" to switch it off. Default:
    kind "attention"."""
    query: Literal["current", "previous"] = "current"
    """Decoder state that attention uses as its query: "current" is the state after this step's
    input (Luong), "previous" the state before it (Bahdanau). Default: "current"."""
    context: tuple[Literal["input", "readout", "layer", "state"], ...] = ("readout",)
    """Where the context vector of attention is used: "input" appends it to the input of the cell,
    "readout" to the input of the readout, "layer" to the input of the second recurrent layer.
    "state" replaces the hidden state with the context vector. Default: ["readout"]."""
    readout: Literal["linear", "tanh"] = "linear"
    """Layers between the state and the logits: "linear" is the output layer only, "tanh" adds a
    tanh layer, as wide as the embedding, before the output layer. Default: "linear"."""
    readout_input: bool = False
    """Let the readout also read the embedding of the previous token, in addition to the state.
    Default: false."""
    copying: bool = False
    """Let the decoder copy source tokens, which helps with names and numbers (See et al. 2017).
    Requires text.shared = true and attention. Default: false."""
    embedding: EmbeddingConfig = LearnedEmbeddingConfig()
    """Embedding of the target tokens. Default: kind "learned"."""
    positions: InputPositionsConfig = NoPositionsConfig()
    """Position encoding, which is joined to the embeddings. Default: kind "none"."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout on the embeddings, between layers and before the readout. Default: 0.0."""
    locked_dropout: bool = False
    """Use the same dropout mask at every position of a sequence (Gal and Ghahramani 2016).
    Default: false."""
    weight_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the state-to-state weights that training sets to zero, chosen anew for each batch
    (Merity et al. 2018). Default: 0.0."""

    @property
    def readout_matches_embedding(self) -> bool:
        """True if the input of the output layer is as wide as an embedding.

        Only then can the output layer and the embedding share weights.
        """
        if self.readout == "tanh":
            return True
        embedding_width = (
            self.embedding.width if isinstance(self.embedding, LearnedEmbeddingConfig) else None
        )
        reads_context = isinstance(self.attention, AttentionConfig) and "readout" in self.context
        reads_more = reads_context or "readout" in self.summary or self.readout_input
        return (embedding_width or self.width) == self.width and not reads_more

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = position_problems(self.embedding, self.positions, self.width)
        attention = self.attention
        if isinstance(attention, AttentionConfig):
            if not self.context:
                problems.append(
                    "context is empty, so the result of attention would not be used; "
                    "add a use such as 'readout', or set attention.kind = 'none'"
                )
            if "layer" in self.context and self.layers < 2:
                problems.append(
                    "context 'layer' goes to the next recurrent layer, but layers is 1; "
                    "set layers to 2 or more"
                )
            if {"input", "state"} & set(self.context) and (
                self.locked_dropout or self.weight_dropout
            ):
                problems.append(
                    "context 'input' and 'state' are computed one position at a time, and "
                    "locked_dropout and weight_dropout would be drawn anew at each position; use "
                    "context 'readout' or 'layer', or remove both dropout settings"
                )
            if attention.projection != "none" or attention.values == "learned":
                problems += heads_problems(attention.width or self.width, attention.heads)
        if problems:
            raise ValueError("\n".join(problems))
        return self
