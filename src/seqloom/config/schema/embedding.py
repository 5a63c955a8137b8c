"""Settings of embeddings and position encodings."""

from typing import Annotated, Literal

from pydantic import Field

from seqloom.config.schema.section import Section


class LearnedEmbeddingConfig(Section):
    """A learned vector for each token."""

    kind: Literal["learned"] = "learned"
    width: int | None = Field(None, gt=0)
    """Width of an embedding. Default: the width of the network that reads it."""
    noise: float = Field(0.0, ge=0)
    """Standard deviation of the Gaussian noise that training adds to embeddings. Default: 0.0."""
    word_dropout: float = Field(0.0, ge=0, lt=1)
    """Share of tokens whose embedding is set to zero in training (Sennrich and Zhang 2019). Helps
    with little data; 0.1 is common. Default: 0.0."""


class OneHotEmbeddingConfig(Section):
    """No embedding: token i is the i-th unit vector."""

    kind: Literal["one-hot"] = "one-hot"


EmbeddingConfig = Annotated[
    LearnedEmbeddingConfig | OneHotEmbeddingConfig, Field(discriminator="kind")
]


class NoPositionsConfig(Section):
    """No position encoding."""

    kind: Literal["none"] = "none"


class OneHotPositionsConfig(Section):
    """One-hot: position t is encoded as the t-th unit vector."""

    kind: Literal["one-hot"] = "one-hot"
    max_length: int = Field(256, gt=0)
    """Number of positions. Longer sequences are not possible. Default: 256."""
    join: Literal["add", "append"] = "append"
    """Add the encoding to the embedding, or append it. Default: "append"."""


class SinusoidalPositionsConfig(Section):
    """Sines and cosines of decreasing frequency (Vaswani et al. 2017)."""

    kind: Literal["sinusoidal"] = "sinusoidal"
    join: Literal["add", "append"] = "add"
    """Add the encoding to the embedding, or append it. Default: "add"."""
    width: int = Field(64, gt=0)
    """Width of the encoding if it is appended. An added encoding is as wide as the embedding.
    Default: 64."""
    frequencies: Literal["lecture", "vaswani", "fairseq"] = "lecture"
    """Frequencies ω_k of an encoding of width d: "lecture" is 10000^(-2k/d) with k from 1, "vaswani"
    the same with k from 0 (Vaswani et al. 2017, Marian), "fairseq" is 10000^(-k/(d/2-1)) with k from
    0 (fairseq, M2M100, NLLB). Default: "lecture"."""
    layout: Literal["interleaved", "halves"] = "interleaved"
    """Order of the entries: "interleaved" puts the sine and the cosine of a frequency side by side,
    "halves" puts all sines before all cosines (Marian, fairseq, M2M100). Default: "interleaved"."""
    offset: int = Field(0, ge=0)
    """Position of the first token. 0 in Marian, 2 in M2M100 and NLLB. Default: 0."""


class LearnedPositionsConfig(Section):
    """A learned vector for each position."""

    kind: Literal["learned"] = "learned"
    max_length: int = Field(256, gt=0)
    """Number of positions. Longer sequences are not possible. Default: 256."""
    join: Literal["add", "append"] = "add"
    """Add the encoding to the embedding, or append it. Default: "add"."""
    width: int = Field(64, gt=0)
    """Width of the encoding if it is appended. An added encoding is as wide as the embedding.
    Default: 64."""


class RotaryPositionsConfig(Section):
    """Rotary: the queries and keys of self-attention are rotated by angles that are proportional to
    the position."""

    kind: Literal["rotary"] = "rotary"


InputPositionsConfig = Annotated[
    NoPositionsConfig | OneHotPositionsConfig | SinusoidalPositionsConfig | LearnedPositionsConfig,
    Field(discriminator="kind"),
]
"""Position encodings that are added or appended to the embeddings."""
PositionsConfig = Annotated[
    NoPositionsConfig
    | OneHotPositionsConfig
    | SinusoidalPositionsConfig
    | LearnedPositionsConfig
    | RotaryPositionsConfig,
    Field(discriminator="kind"),
]
"""All position encodings."""


def _embedding_width(embedding: EmbeddingConfig, network_width: int) -> int | None:
    """Return the width of an embedding.

    Return None for one-hot embeddings. Their width is the size of the vocabulary, which a recipe
    does not contain.
    """
    if isinstance(embedding, OneHotEmbeddingConfig):
        return None
    return embedding.width or network_width


def position_problems(
    embedding: EmbeddingConfig, positions: PositionsConfig, network_width: int
) -> list[str]:
    """Return a list of one error message if the position encoding is too wide, else [].

    An encoding that is added to the embeddings must not be wider than the embeddings.

    network_width: width of the network that reads the embeddings. It is the default width of an
                   embedding
    """
    if isinstance(positions, OneHotPositionsConfig) and positions.join == "add":
        width = _embedding_width(embedding, network_width)
        if width is not None and positions.max_length > width:
            return [
                f"positions: one-hot positions up to {positions.max_length} cannot be added to "
                f"embeddings of width {width}; use join = 'append', or max_length = {width} or less"
            ]
    return []
