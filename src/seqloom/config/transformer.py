"""Transformer encoders and decoders, and their switches."""

from typing import Literal, Self

from pydantic import Field, model_validator

from seqloom.config.attention import TRANSFORMER_ATTENTION, AttentionConfig, heads_problems
from seqloom.config.inputs import (
    EmbeddingConfig,
    LearnedEmbeddingConfig,
    PositionsConfig,
    RotaryPositionsConfig,
    SinusoidalPositionsConfig,
    position_problems,
)
from seqloom.config.section import Section


class LayersConfig(Section):
    """A stack of Transformer layers, whatever it reads."""

    width: int = Field(256, gt=0)
    layers: int = Field(3, ge=1)
    feedforward: int = Field(1024, gt=0)
    activation: Literal["relu", "gelu"] = "relu"
    norm: Literal["pre", "post"] = "pre"
    """Layer norm before each sublayer, or after its residual sum as in the paper."""
    attention: AttentionConfig = TRANSFORMER_ATTENTION
    dropout: float = Field(0.1, ge=0, lt=1)
    """On the embedded input and on each sublayer's output."""
    feedforward_dropout: float = Field(0.0, ge=0, lt=1)
    """Inside the feed-forward network. Slow on CPUs."""

    @property
    def state_width(self) -> int:
        return self.width

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if problems := self._problems():
            raise ValueError("\n".join(problems))
        return self

    def _problems(self) -> list[str]:
        problems: list[str] = []
        attention = self.attention
        inner = attention.width or self.width
        for width in attention.split_widths(self.width, self.width):
            problems += heads_problems(width, attention.heads)
        read = self.width if attention.values == "states" else inner
        if read != self.width and not attention.merge:
            problems.append(
                f"attention reads vectors of width {read} that cannot be added to a stream of "
                f"width {self.width}; set attention.merge = true, or leave attention.width out"
            )
        return problems


class TransformerLayersConfig(LayersConfig):
    """What a Transformer's encoder and decoder of tokens have in common."""

    embedding: EmbeddingConfig = LearnedEmbeddingConfig()
    positions: PositionsConfig = SinusoidalPositionsConfig()

    def _problems(self) -> list[str]:
        problems = position_problems(self.embedding, self.positions, self.width)
        problems += super()._problems()
        attention = self.attention
        inner = attention.width or self.width
        head = (self.width if attention.projection == "none" else inner) // attention.heads
        if not problems and isinstance(self.positions, RotaryPositionsConfig) and head % 2:
            problems.append(
                f"rotary positions turn pairs of numbers, but a head is {head} wide; "
                "make width divided by heads even"
            )
        return problems


class TransformerEncoderConfig(TransformerLayersConfig):
    kind: Literal["transformer"] = "transformer"
    residual_gap: int | None = Field(None, ge=1)
    """The layer, counted from 1, whose attention has no way around it. What an encoder makes of a
    sentence is then bound less to the order of its words, and pairs of languages that were never
    trained on are translated better (Liu et al. 2021). Left out: every layer has one."""

    @model_validator(mode="after")
    def _gap_inside(self) -> Self:
        if self.residual_gap is not None and self.residual_gap > self.layers:
            raise ValueError(
                f"residual_gap: there is no layer {self.residual_gap} of {self.layers}; the one in "
                f"the middle is {(self.layers + 1) // 2}"
            )
        return self


class TransformerDecoderConfig(TransformerLayersConfig):
    kind: Literal["transformer"] = "transformer"
    copying: bool = False
    """May take tokens from the source as they are: names and numbers (needs text.shared)."""
