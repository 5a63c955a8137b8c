"""What a network is fed: tokens as vectors, and where they stand."""

from typing import Annotated, Literal

from pydantic import Field

from seqloom.config.section import Section


class LearnedEmbeddingConfig(Section):
    kind: Literal["learned"] = "learned"
    width: int | None = Field(None, gt=0)
    """Left out: the width of the network it feeds."""
    noise: float = Field(0.0, ge=0)
    """Standard deviation of the Gaussian noise added to embeddings in training."""
    word_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of tokens whose whole vector is zero in training, as if the word were missing."""


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


def _input_width(embedding: EmbeddingConfig, width: int) -> int | None:
    """How wide the embedded tokens are; None while only the vocabulary knows."""
    if isinstance(embedding, OneHotEmbeddingConfig):
        return None
    return embedding.width or width


def position_problems(
    embedding: EmbeddingConfig, positions: PositionsConfig, width: int
) -> list[str]:
    """Why these positions cannot be joined to these embeddings."""
    if isinstance(positions, OneHotPositionsConfig) and positions.join == "add":
        room = _input_width(embedding, width)
        if room is not None and positions.max_length > room:
            return [
                f"positions: one-hot positions up to {positions.max_length} cannot be added to "
                f"embeddings of width {room}; use join = 'append', or max_length = {room} or less"
            ]
    return []
