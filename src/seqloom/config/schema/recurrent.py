"""Settings of recurrent encoders and decoders."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from seqloom.config.extensions.unions import ByKind
from seqloom.config.schema.attention import AttentionConfig, NoAttentionConfig, heads_problems
from seqloom.config.schema.embedding import (
    EmbeddingConfig,
    InputPositionsConfig,
    LearnedEmbeddingConfig,
    NoPositionsConfig,
    position_problems,
)
from seqloom.config.schema.encoder_decoder import DecoderConfig, EncoderConfig, LastStates

Cell = Literal["rnn", "gru", "lstm"]


class RecurrentEncoderConfig(EncoderConfig):
    """A recurrent encoder."""

    builds: ClassVar[str] = "seqloom.models.build:build_recurrent_encoder"
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
    embedding: Annotated[EmbeddingConfig, ByKind()] = LearnedEmbeddingConfig()
    """Embedding of the source tokens. Default: kind "learned"."""
    positions: Annotated[InputPositionsConfig, ByKind()] = NoPositionsConfig()
    """Position encoding, which is joined to the embeddings. Default: kind "none"."""
    self_attention: Annotated[AttentionConfig | NoAttentionConfig, Field(discriminator="kind")] = (
        NoAttentionConfig()
    )
    """Attention from the states h of the top layer to themselves. The decoder then reads
    h'_t = Σ α v instead of h_t. The last state, from which the decoder starts, does not change.
    Default: kind "none"."""
    self_attention_residual: bool = False
    """Add the states to the result of self-attention: h_t + h'_t. Default: false."""
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
        return self.width * (2 if self.direction == "both" else 1)

    @property
    def last_states(self) -> LastStates:
        return LastStates(self.cell, self.layers, self.state_width)

    @property
    def summary_width(self) -> int:
        # The last state of an LSTM consists of a hidden state and a cell state.
        return self.state_width * (2 if self.cell == "lstm" else 1)

    @property
    def summary_layers(self) -> int:
        return self.layers

    @property
    def shared_width(self) -> int | None:
        return self.embedding.vector_width(self.width)

    def tie_problems(self) -> list[str]:
        return self.embedding.tie_problems("encoder")

    def vocabulary_problems(self, tokens: int) -> list[str]:
        return position_problems(self.embedding, self.positions, self.width, tokens)

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = position_problems(self.embedding, self.positions, self.width)
        attention = self.self_attention
        if isinstance(attention, AttentionConfig):
            problems += [
                f"self_attention: {problem}"
                for width in attention.head_widths(self.state_width, self.state_width)
                for problem in heads_problems(width, attention.heads)
            ]
            problems += attention.width_problems("self_attention", self.state_width)
        elif self.self_attention_residual:
            problems.append(
                "self_attention_residual: there is no self-attention to add the states to; set "
                "self_attention = {kind = 'attention'}, or self_attention_residual = false"
            )
        if problems:
            raise ValueError("\n".join(problems))
        return self


class RecurrentDecoderConfig(DecoderConfig):
    """A recurrent decoder, with or without attention."""

    builds: ClassVar[str] = "seqloom.models.build:build_recurrent_decoder"
    has_embedding: ClassVar[bool] = True
    kind: Literal["recurrent"] = "recurrent"
    cell: Cell = "gru"
    """Recurrent cell: "rnn" is a vanilla RNN with tanh. Default: "gru"."""
    width: int = Field(256, gt=0)
    """Number of hidden units. Default: 256."""
    layers: int = Field(1, ge=1)
    """Number of stacked layers. Default: 1."""
    initial_state: Literal["copy", "mlp", "flattened", "zeros"] = "mlp"
    """Initial state of the decoder: "copy" takes the encoder's last states, "mlp" passes them
    through learned layers (of an encoder without a last state: the mean of its states), "flattened"
    passes the vectors of all cells of an image, one after another, through learned layers, "zeros"
    starts from zeros. Default: "mlp"."""
    initial_state_layers: int = Field(1, ge=1)
    """Number of layers of the network of initial_state "mlp" and "flattened". Each layer is
    tanh(W x + b). Default: 1."""
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
    feed_output: bool = True
    """Feed the previous output token back into the decoder. If false, a learned vector, the same at
    every step, replaces its embedding. Then the decoder does not know which tokens it has generated,
    and teacher forcing equals free running. Default: true."""
    copying: bool = False
    """Let the decoder copy source tokens, which helps with names and numbers (See et al. 2017).
    Requires text.shared = true and attention. Default: false."""
    embedding: Annotated[EmbeddingConfig, ByKind()] = LearnedEmbeddingConfig()
    """Embedding of the target tokens. Default: kind "learned"."""
    positions: Annotated[InputPositionsConfig, ByKind()] = NoPositionsConfig()
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
    def cross_attention(self) -> AttentionConfig | None:
        return self.attention if isinstance(self.attention, AttentionConfig) else None

    @property
    def copies(self) -> bool:
        return self.copying

    @property
    def query_width(self) -> int:
        return self.width

    @property
    def shared_width(self) -> int | None:
        return self.embedding.vector_width(self.width)

    @property
    def readout_matches_embedding(self) -> bool:
        """True if the vector that the output layer reads is as wide as an embedding.

        The output layer and the embedding can share weights only in this case.
        """
        if self.readout == "tanh":
            return True
        reads_context = self.cross_attention is not None and "readout" in self.context
        reads_more = reads_context or "readout" in self.summary or self.readout_input
        return (self.embedding.own_width or self.width) == self.width and not reads_more

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = position_problems(self.embedding, self.positions, self.width)
        attention = self.cross_attention
        if attention is not None:
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
            if "state" in self.context and attention.score.is_positional:
                problems.append(
                    f"context 'state' would replace the state by a context that does not depend on it, "
                    f"because attention.score is '{attention.score.kind}'; use context 'input', "
                    "'readout' or 'layer'"
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
        if self.initial_state_layers > 1 and self.initial_state not in ("mlp", "flattened"):
            problems.append(
                f"initial_state_layers = {self.initial_state_layers} needs initial_state 'mlp' or "
                f"'flattened': '{self.initial_state}' has no layers"
            )
        if not self.feed_output:
            problems += self._no_feed_problems()
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _no_feed_problems(self) -> list[str]:
        """Return an error message for each setting that needs the previous output token.

        Called only if `feed_output` is false, so that the decoder does not read its previous token.
        """
        problems = []
        if self.readout_input:
            problems.append(
                "readout_input: the readout cannot read the previous token, because feed_output is "
                "false; set readout_input = false or feed_output = true"
            )
        if self.embedding != LearnedEmbeddingConfig(width=self.embedding.own_width):
            problems.append(
                "embedding: no token is embedded, because feed_output is false; remove the settings of "
                "embedding except width, or set feed_output = true"
            )
        return problems

    def problems_without_encoder(self) -> list[str]:
        problems = super().problems_without_encoder()
        if self.cross_attention is not None:
            problems.append(
                "decoder.attention: there is no encoder to attend to; set attention.kind = 'none'"
            )
        if not self.feed_output:
            problems.append(
                "decoder.feed_output: without an encoder and without the previous token, the decoder has "
                "no input; set feed_output = true"
            )
        if self.initial_state != "zeros":
            problems.append(
                "decoder.initial_state: there is no encoder to take the initial state from; set it to 'zeros'"
            )
        if self.summary:
            problems.append("decoder.summary: there is no encoder to summarise; remove it")
        return problems

    def encoder_problems(self, encoder: EncoderConfig) -> list[str]:
        problems = super().encoder_problems(encoder)
        states = encoder.last_states
        if self.initial_state == "copy" and states is None:
            problems.append(
                "decoder.initial_state 'copy' needs a recurrent encoder: other encoders have no last "
                "state; use 'mlp'"
            )
        elif self.initial_state == "copy" and states != (
            expected := LastStates(self.cell, self.layers, self.width)
        ):
            problems.append(
                f"decoder.initial_state 'copy' needs equal shapes, but the encoder ends in {states} and "
                f"the decoder starts from {expected}; make them equal or use 'mlp'"
            )
        if self.initial_state == "flattened" and encoder.reads != "images":
            problems.append(
                "decoder.initial_state 'flattened' needs an image encoder, which has the same number of "
                "cells for every image; texts have different lengths, so use 'mlp'"
            )
        if self.cross_attention is None and self.initial_state == "zeros" and not self.summary:
            problems.append(
                "decoder: it gets no information about the source, because initial_state, summary and "
                "attention are all off; switch one of them on"
            )
        return problems

    def tie_problems(self) -> list[str]:
        if not self.embedding.is_learned:
            return self.embedding.tie_problems("decoder")
        if not self.feed_output:
            return [
                "tie: the decoder has no embedding to share, because decoder.feed_output is false; set "
                "feed_output = true or tie = 'none'"
            ]
        if not self.readout_matches_embedding:
            return [
                "tie: an output layer shared with the embedding needs inputs as wide as the "
                "embedding; set decoder.readout = 'tanh'"
            ]
        return []

    def vocabulary_problems(self, tokens: int) -> list[str]:
        return position_problems(self.embedding, self.positions, self.width, tokens)
